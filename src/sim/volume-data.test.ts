import { expect, test } from "vitest";
import type { StoredVolume } from "./storage.ts";
import { VolumeData, type Journal, type Synced } from "./volume-data.ts";

const WRITER = { node: "node-1", podUid: "u1" };
const volume = (handle: string) => ({ handle }) as StoredVolume;

/** A disk of text, as one may find it. */
class Disk implements Journal {
  text = "";
  syncedText = "";

  read(): string {
    return this.text;
  }

  append(text: string, { synced }: Synced): void {
    this.text += text;
    if (synced) this.syncedText = this.text;
  }
}

function written(...syncs: readonly boolean[]) {
  const data = new VolumeData();
  const disk = new Disk();
  const d1 = volume("d1");
  const write = (synced: boolean) => data.write({ volume: d1, journal: disk, synced }, WRITER);
  for (const synced of syncs) write(synced);
  const problem = () => data.problem(d1, disk);
  return { data, disk, d1, write, problem };
}

test("a synced line that is gone, or cut, is seen", () => {
  const { data, disk, d1, problem } = written(true, true);
  data.mayHaveLost(d1);
  disk.text = disk.text.slice(0, -2);

  expect(problem()).toBe("d1 lost 1 of 2 acknowledged writes, the first: d1 2 node-1 u1");
});

test("a line before the last sync is as good as synced", () => {
  const { data, disk, d1, problem } = written(false, true);
  data.mayHaveLost(d1);
  expect(problem()).toBeUndefined();
  disk.text = disk.text.split("\n").slice(1).join("\n");

  expect(problem()).toMatch(/^d1 lost 2 of 2 acknowledged writes/);
});

test("what was not synced has to be there while no power fails", () => {
  const { disk, problem } = written(true, false);
  disk.text = disk.syncedText;

  expect(problem()).toMatch(/^d1 lost 1 of 2 acknowledged writes/);
});

test("after a power loss what was not synced may be gone, cut or there; whoever goes on writing is not in doubt", () => {
  const { text } = written(true, false).disk;
  const { syncedText } = written(true, false).disk;
  for (let end = syncedText.length; end <= text.length; end++) {
    const { data, disk, d1, write, problem } = written(true, false);
    data.mayHaveLost(d1);
    disk.text = text.slice(0, end);

    expect(problem(), `cut at ${end}`).toBeUndefined();
    write(false);
    write(true);
    expect(problem(), `cut at ${end}, then written`).toBeUndefined();
    data.mayHaveLost(d1);
    expect(problem()).toBeUndefined();
  }
});

test("what a power loss has left stays", () => {
  const { data, disk, d1, problem } = written(true, false);
  data.mayHaveLost(d1);
  expect(problem()).toBeUndefined();
  data.mayHaveLost(d1);
  disk.text = disk.syncedText;

  expect(problem()).toMatch(/^d1 lost 1 of 2 acknowledged writes/);
});

test("a byte of another volume, and one that nobody wrote, are seen", () => {
  const { disk, problem } = written(true);
  const before = disk.text;

  disk.text = `${before}d2 9 node-1 u1\n`;
  expect(problem()).toBe("d1 holds a byte of another volume: d2 9 node-1 u1");
  disk.text = `${before}d1 9 node-1 u1\n`;
  expect(problem()).toBe("d1 holds what nobody wrote: d1 9 node-1 u1");
});
