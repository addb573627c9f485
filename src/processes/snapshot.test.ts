import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openLmdbStore } from "../apiserver/store/lmdb.ts";
import type { ObjectStore } from "../apiserver/store/store.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { lockDirectory } from "./lock.ts";
import { restoreSnapshot, revisionAfter } from "./restore.ts";
import { readSnapshotStatus, saveSnapshot } from "./snapshot.ts";

let place: string;
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), "mooring-snapshot-"));
});
afterEach(async () => {
  await rm(place, { recursive: true, force: true });
});

const clock = new SimScheduler(createSeededRandom(1)).createClock();
const at = (name: string) => join(place, name);
const key = (name: string, resource = "pods") => ({ resource, namespace: "n", name });
const save = (file: string, { dataDir = "data", overwrite = false } = {}) =>
  saveSnapshot({ clock }, { dataDir: at(dataDir), file: at(file), overwrite });
const restore = (file: string, dataDir: string) =>
  restoreSnapshot({ clock }, { file: at(file), dataDir: at(dataDir) });

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o777).toString(8);
}

function open(dataDir: string): Promise<ObjectStore> {
  return openLmdbStore({ clock }, { directory: join(at(dataDir), "store") });
}

function write(store: ObjectStore, name: string, text: string) {
  const current = store.get(key(name));
  if (current === undefined) return store.create(key(name), () => text);
  return store.update(key(name), () => text, { expected: current.revision });
}

/** A directory with certificates and a store of two objects at revision 6; its history has more. */
async function givenData(): Promise<void> {
  await mkdir(join(at("data"), "pki"), { recursive: true });
  for (const name of ["ca.crt", "ca.key", "sa.key"])
    await writeFile(join(at("data"), "pki", name), `text of ${name}`);
  await writeFile(join(at("data"), "pki", "ca.key.ab12.tmp"), "half a file");
  const store = await open("data");
  await write(store, "a", '{"v":1}');
  await write(store, "gone", "{}");
  await store.create(key("b", "nodes"), () => '{"v":2}');
  await write(store, "a", '{"v":3}');
  await store.delete(key("gone"), () => "{}", { expected: 3 });
  await store.close();
}

describe("saving", () => {
  beforeEach(givenData);

  test("keeps what is there at the last revision, the keys, and what it is", async () => {
    const status = await save("x.snapshot");

    expect(status).toMatchObject({
      file: at("x.snapshot"),
      formatVersion: 1,
      revision: 6,
      objects: 2,
      files: ["pki/ca.crt", "pki/ca.key", "pki/sa.key"],
      resources: { nodes: 1, pods: 1 },
    });
    expect(await readSnapshotStatus(at("x.snapshot"))).toEqual(status);
    expect((await stat(at("x.snapshot"))).size).toBe(status.sizeBytes);
  });

  test("makes a file for its owner alone and leaves no other, nor a lock", async () => {
    await save("x.snapshot");

    expect(await modeOf(at("x.snapshot"))).toBe("600");
    expect(await readdir(place)).toEqual(["data", "x.snapshot"]);
    expect(await readdir(at("data"))).toEqual(["pki", "store"]);
  });

  test("reads a store that is in use, and does not keep it from writing", async () => {
    const store = await open("data");
    const lock = await lockDirectory(at("data"));

    const first = await save("1.snapshot");
    await write(store, "c", '{"v":"new"}');
    const second = await save("2.snapshot");

    expect([first.revision, second.revision]).toEqual([6, 7]);
    expect(second.resources).toEqual({ pods: 2, nodes: 1 });
    await store.close();
    await lock.release();
  });

  test("replaces a file only when asked to", async () => {
    await writeFile(at("x.snapshot"), "precious");

    await expect(save("x.snapshot")).rejects.toThrow(/there already.*--overwrite/);
    expect(await readFile(at("x.snapshot"), "utf8")).toBe("precious");

    expect(await save("x.snapshot", { overwrite: true })).toMatchObject({ objects: 2 });
  });

  test("removes drafts of processes that were killed, and no others", async () => {
    const drafts = [
      `x.snapshot.${2 ** 30}.partial`,
      `x.snapshot.${process.ppid}.partial`,
      "x.snapshot.partial",
    ];
    for (const name of drafts) await writeFile(at(name), "");

    await save("x.snapshot");

    expect((await readdir(place)).filter((name) => name.endsWith(".partial"))).toEqual(drafts.slice(1));
  });

  test("a damaged store is refused by name, and no file is made", async () => {
    const data = join(at("data"), "store", "data.mdb");
    const bytes = await readFile(data);
    // Wherever it stands: a page that was copied leaves its old text behind.
    for (let found = bytes.indexOf('{"v":3}'); found >= 0; found = bytes.indexOf('{"v":3}'))
      bytes[found + 5] = 52;
    await writeFile(data, bytes);

    await expect(save("x.snapshot")).rejects.toMatchObject({
      code: "BadDataDir",
      message: expect.stringMatching(/snapshot of .*data: Corrupt: .*revision 5/) as string,
    });
    expect(await readdir(place)).toEqual(["data"]);
  });

  for (const [what, file, dataDir, complaint] of [
    ["a directory without a store", "x", "elsewhere", /no store in it.*--data-dir/],
    [
      "a file in a folder that is not there",
      "no/x",
      "data",
      /cannot write snapshot .*no such file or directory/,
    ],
    ["a file that is a folder", "data", "data", /it is a directory/],
  ] as const) {
    test(`${what} is refused, and nothing is made`, async () => {
      await expect(save(file, { dataDir, overwrite: true })).rejects.toThrow(complaint);
      expect(await readdir(place)).toEqual(["data"]);
    });
  }
});

describe("restoring", () => {
  beforeEach(async () => {
    await givenData();
    await save("x.snapshot");
  });

  test("gives back every object with its revision, and the keys, for their owner alone", async () => {
    const restored = await restore("x.snapshot", "deep/new");

    expect(restored).toEqual({
      dataDir: at("deep/new"),
      objects: 2,
      revision: 6,
      startRevision: 1_000_000_006,
    });
    const store = await open("deep/new");
    expect(store.get(key("a"))).toMatchObject({ revision: 5, text: '{"v":3}' });
    expect(store.get(key("b", "nodes"))).toMatchObject({ revision: 4, text: '{"v":2}' });
    expect(store.get(key("gone"))).toBeUndefined();
    expect(await readFile(at("deep/new/pki/sa.key"), "utf8")).toBe("text of sa.key");
    for (const path of ["", "store", "pki"]) expect(await modeOf(join(at("deep/new"), path))).toBe("700");
    for (const path of ["store/data.mdb", "pki/ca.key"])
      expect(await modeOf(join(at("deep/new"), path))).toBe("600");
    expect(await readdir(at("deep"))).toEqual(["new"]);
    expect(await readdir(at("deep/new"))).toEqual(["pki", "store"]);
    await store.close();
  });

  test("goes on past every revision the lost server may have told, and knows none of them", async () => {
    await restore("x.snapshot", "new");
    const store = await open("new");

    expect([store.revision, store.compactedRevision]).toEqual([1_000_000_006, 1_000_000_006]);
    for (const afterRevision of [1, 5, 6, 7, 1_000_000_005]) {
      const watch = store.watch({ resource: "pods", afterRevision }, () => undefined);
      expect([watch.take(), watch.state]).toEqual([undefined, "expired"]);
    }
    expect(await write(store, "a", "{}")).toMatchObject({ object: { revision: 1_000_000_007 } });
    expect(await write(store, "a", "{}")).toMatchObject({ object: { revision: 1_000_000_008 } });
    await store.close();
    const again = await open("new");
    expect(again.revision).toBe(1_000_000_008);
    await again.close();
  });

  test("can be saved and restored again, to the same objects", async () => {
    await restore("x.snapshot", "new");
    await save("y.snapshot", { dataDir: "new" });
    await restore("y.snapshot", "newer");

    const [first, second] = [await open("new"), await open("newer")];
    for (const resource of ["pods", "nodes"])
      expect([...second.scan({ resource })]).toEqual([...first.scan({ resource })]);
    expect(second.compactedRevision).toBeGreaterThan(first.revision);
    await first.close();
    await second.close();
  });

  test("fills a directory that is empty, also one behind a link", async () => {
    await mkdir(at("empty"));
    await symlink(at("empty"), at("link"));

    await restore("x.snapshot", "link");

    expect(await readdir(at("empty"))).toEqual(["pki", "store"]);
  });

  test("what a killed restore left is replaced", async () => {
    await mkdir(join(at("new.partial"), "store"), { recursive: true });
    await writeFile(at("new.partial/store/data.mdb"), "half");
    await writeFile(at("new.partial/mooring.lock"), JSON.stringify({ pid: 2 ** 30, started: "1" }));

    await restore("x.snapshot", "new");

    expect(await readdir(place)).toEqual(["data", "new", "x.snapshot"]);
  });

  test("a second restore into the same place is refused while the first is at it", async () => {
    const results = await Promise.allSettled([restore("x.snapshot", "new"), restore("x.snapshot", "new")]);

    const [reason] = results.flatMap((result) =>
      result.status === "rejected" ? [result.reason as Error] : [],
    );
    expect(reason?.message).toMatch(/is used by process|is not empty/);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await readdir(at("new"))).toEqual(["pki", "store"]);
  });

  test("a directory that has anything in it is left alone, and the way out is named", async () => {
    await expect(restore("x.snapshot", "data")).rejects.toThrow(/not empty; move it away \(mv .*--data-dir/);

    expect(await readdir(at("data"))).toEqual(["pki", "store"]);
  });

  test("a directory in use names the process", async () => {
    const lock = await lockDirectory(at("data"));

    await expect(restore("x.snapshot", "data")).rejects.toThrow(`is used by process ${process.pid}`);
    await lock.release();
  });

  test("a damaged snapshot is refused before anything is made", async () => {
    const bytes = await readFile(at("x.snapshot"));
    await writeFile(at("cut.snapshot"), bytes.subarray(0, bytes.length - 1));
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    await writeFile(at("flipped.snapshot"), bytes);

    for (const file of ["cut.snapshot", "flipped.snapshot"]) {
      await expect(restore(file, "new")).rejects.toThrow(/cannot read snapshot .*Nothing was changed/);
    }

    expect(await readdir(place)).toEqual(["cut.snapshot", "data", "flipped.snapshot", "x.snapshot"]);
  });

  test("a place that cannot be written says so and is left as it was", async () => {
    await writeFile(at("file"), "");
    await expect(restore("x.snapshot", "file")).rejects.toThrow(/cannot restore into .*a file is in the way/);

    expect(await readdir(place)).toEqual(["data", "file", "x.snapshot"]);
  });
});

test("the older the snapshot, the further revisions are moved; a clock set back moves them enough", () => {
  const yearMs = 365 * 24 * 3_600_000;

  expect(revisionAfter(10, 0)).toBe(1_000_000_010);
  expect(revisionAfter(10, -5 * yearMs)).toBe(1_000_000_010);
  // A year of 50,000 writes a second is passed.
  expect(revisionAfter(10, yearMs)).toBeGreaterThan(10 + (yearMs / 1_000) * 50_000);
  expect(revisionAfter(10, yearMs)).toBeLessThan(2 ** 53 / 2_000);
});
