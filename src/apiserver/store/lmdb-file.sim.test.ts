import { beforeAll, describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { createSystemClock } from "../../base/system-clock.ts";
import { openEnvironment } from "./lmdb-environment.ts";
import { readRecords } from "./lmdb-file.ts";
import { loadState } from "./lmdb-load.ts";
import { bytesOf, pod, put, scratch, sourceOf, viewOf } from "./lmdb-scratch.testing.ts";
import { openLmdbStore } from "./lmdb.ts";
import { StoreError } from "./store.ts";

const directory = scratch();
const clock = createSystemClock();
const OPTIONS = { historyMsMin: 0, historyRevisionsMin: 60 };

/** A file with some past: trees of several levels, values of one page and of several, free pages. */
async function writeStore(writes: number) {
  const random = createSeededRandom(7);
  const path = directory("damage");
  const store = await openLmdbStore({ clock }, { directory: path, mapBytes: 65_536, ...OPTIONS });
  for (let write = 0; write < writes; write++) {
    const key = pod(`p${random.int(120)}`, `n${random.int(3)}`);
    const current = store.get(key);
    const text = "x".repeat(random.int(random.int(10) === 0 ? 9_000 : 600));
    if (current !== undefined && random.int(3) === 0) {
      await store.delete(key, () => text, { expected: current.revision });
    } else await put(store, key, text);
  }
  await store.compact(store.compactedRevision);
  await store.close();
  return bytesOf(path);
}

function load(bytes: Buffer) {
  return loadState(sourceOf(bytes), clock, OPTIONS);
}

function problemOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

describe("reading the file without the engine", () => {
  test("gives every record that the engine was given, in order", async () => {
    const path = directory("records");
    const environment = openEnvironment(path);
    const random = createSeededRandom(3);
    const expected = new Map<string, Buffer>();
    for (let commit = 0; commit < 40; commit++) {
      const puts = Array.from({ length: 20 }, () => ({
        key: Buffer.from(`k${random.int(400)}`),
        value: Buffer.alloc(random.int(random.int(8) === 0 ? 20_000 : 900), commit),
      }));
      const removes = [...expected.keys()].filter(() => random.int(20) === 0);
      await environment.commit({ puts, removes: removes.map((key) => Buffer.from(key)) });
      for (const { key, value } of puts) expected.set(key.toString(), value);
      for (const key of removes) expected.delete(key);
    }
    await environment.close();

    const read: [string, Buffer][] = [];
    for (const [key, value] of readRecords(sourceOf(bytesOf(path))))
      read.push([key.toString(), Buffer.from(value)]);

    expect(read.length).toBeGreaterThan(150);
    expect(read).toEqual([...expected].sort(([a], [b]) => (a < b ? -1 : 1)));
  });
});

describe("damage", () => {
  let bytes: Buffer;
  beforeAll(async () => (bytes = await writeStore(400)), 30_000);

  test("of any one byte either does not matter or is reported with its place", { timeout: 30_000 }, () => {
    const random = createSeededRandom(11);
    const truth = viewOf(load(bytes));
    const outcomes = { same: 0, reported: 0 };

    for (let round = 0; round < 800; round++) {
      // The two meta pages get more than their share: they are what everything else hangs on.
      const offset = round < 336 ? (round % 168) + (round < 168 ? 0 : 4_096) : random.int(bytes.length);
      const changed = Buffer.from(bytes);
      const mask = random.int(2) === 0 ? 0xff : 1 << random.int(8);
      changed.writeUInt8(changed.readUInt8(offset) ^ mask, offset);

      const found = problemOf(() => viewOf(load(changed)));

      if (found instanceof StoreError) {
        outcomes.reported++;
        expect(found.message).toMatch(/^(Corrupt: read data\.mdb|NewerFormat: open data\.mdb)/);
      } else {
        outcomes.same++;
        expect(found, `byte ${offset} changed by ${mask}`).toEqual(truth);
      }
    }

    expect(outcomes.reported).toBeGreaterThan(250);
    expect(outcomes.same).toBeGreaterThan(250);
  });

  test("by a file cut short anywhere is reported", () => {
    for (let length = 0; length < bytes.length - 4_096; length += 1_777) {
      expect(problemOf(() => load(bytes.subarray(0, length)))).toMatchObject({ code: "Corrupt" });
    }
  });

  test("by zeros in the place of a page is reported", () => {
    const used: number[] = [];
    for (let offset = 0; offset < bytes.length; offset += 4_096) {
      const changed = Buffer.from(bytes);
      changed.fill(0, offset, offset + 4_096);
      const found = problemOf(() => load(changed));
      if (found instanceof StoreError) used.push(offset);
      else expect(viewOf(load(changed))).toEqual(viewOf(load(bytes)));
    }

    expect(used.slice(0, 2)).toEqual([0, 4_096]);
    expect(used.length).toBeGreaterThan(20);
  });

  test("by a meta page that was set back is reported: it would take back a commit; unless one is known to have failed", () => {
    const [first, second] = [bytes.readBigUInt64LE(152), bytes.readBigUInt64LE(4_096 + 152)];
    const changed = Buffer.from(bytes);
    const newer = first > second ? 0 : 4_096;
    changed.writeBigUInt64LE((first > second ? first : second) - 2n, newer + 152);

    const before = loadState(sourceOf(changed, { hasFailedCommit: true }), clock, OPTIONS);

    expect(problemOf(() => load(changed))).toMatchObject({
      code: "Corrupt",
      message: expect.stringMatching(/data\.mdb at offset \d+: transaction \d+ names it as its root/),
    });
    expect(before.revision).toBeLessThanOrEqual(load(bytes).revision);
  });

  test("by something that is no store at all is reported", () => {
    expect(problemOf(() => load(Buffer.alloc(0)))).toMatchObject({ code: "Corrupt" });
    expect(problemOf(() => load(Buffer.alloc(100_000, "text ")))).toMatchObject({ code: "Corrupt" });
  });
});
