import { beforeAll, describe, expect, test } from "vitest";
import { createSystemClock } from "../../base/system-clock.ts";
import type { Random } from "../../base/random.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { readMeta } from "./lmdb-file.ts";
import { writeKey } from "./lmdb-records.ts";
import { salvage, type Salvaged } from "./lmdb-salvage.ts";
import { bytesOf, scratch, sourceOf } from "./lmdb-scratch.testing.ts";
import { openLmdbStore } from "./lmdb.ts";
import type { StoreKey } from "./store.ts";

const directory = scratch();
const clock = createSystemClock();
const PAGE_BYTES = 4_096;

interface Store {
  readonly bytes: Buffer;
  readonly revision: number;
  /** What was there at the end. */
  readonly objects: ReadonlyMap<string, string>;
  /** Every text an object ever had. */
  readonly ever: ReadonlyMap<string, ReadonlySet<string>>;
}

const nameOf = ({ resource, namespace, name }: StoreKey) => `${resource}/${namespace}/${name}`;

/** Objects of several kinds and sizes, some replaced, some deleted, some of the past compacted. */
async function writeStore(writes: number, seed: number): Promise<Store> {
  const random = createSeededRandom(seed);
  const path = directory("salvage");
  const options = { directory: path, mapBytes: 65_536, historyMsMin: 0, historyRevisionsMin: 40 };
  const store = await openLmdbStore({ clock }, options);
  const ever = new Map<string, Set<string>>();
  for (let write = 0; write < writes; write++) {
    const resource = ["pods", "configmaps"][random.int(2)] ?? "";
    const key = { resource, namespace: `n${random.int(3)}`, name: `object-${random.int(60)}` };
    const text = `${write} ${"x".repeat(random.int(random.int(8) === 0 ? 9_000 : 700))}`;
    const current = store.get(key);
    if (current === undefined) await store.create(key, () => text);
    else if (random.int(4) === 0) await store.delete(key, () => text, { expected: current.revision });
    else await store.update(key, () => text, { expected: current.revision });
    ever.set(nameOf(key), (ever.get(nameOf(key)) ?? new Set()).add(text));
  }
  const all = ["pods", "configmaps"].flatMap((resource) => [...store.scan({ resource })]);
  const objects = new Map(all.map(({ key, text }) => [nameOf(key), text]));
  const { revision } = store;
  await store.close();
  return { bytes: bytesOf(path), revision, objects, ever };
}

/** What must hold of any damage; returns how much of the store was saved. */
function check({ objects, ever, revision }: Store, salvaged: Salvaged, isSmall: boolean): number {
  const names = (keys: readonly StoreKey[]) => new Set(keys.map(nameOf));
  const outdated = names(salvaged.outdated);
  const found = new Map(salvaged.objects.map(({ key, text }) => [nameOf(key), text]));
  for (const [name, text] of found) {
    if (objects.get(name) === text) continue;
    expect([name, outdated.has(name)], "a value that is not the last, and is not said to be").toEqual([
      name,
      true,
    ]);
    expect(ever.get(name)?.has(text), `${name} never had that value`).toBe(true);
  }
  const named = names([...salvaged.lost.flatMap(({ key }) => (key ? [key] : [])), ...salvaged.uncertain]);
  // A name is part of what may be damaged.
  const misnamed = salvaged.lost.filter(({ key }) => key === undefined || !objects.has(nameOf(key)));
  const unnamed = misnamed.length + salvaged.unmatched.length + salvaged.missing;
  const silent = [...objects.keys()].filter((name) => !found.has(name) && !named.has(name));
  if (isSmall) expect(silent.length, `${silent.join(" ")} lost without a word`).toBeLessThanOrEqual(unnamed);
  expect(salvaged.revision).toBeLessThanOrEqual(revision);
  return found.size / objects.size;
}

describe("what can be saved of a damaged store", () => {
  let stores: Store[];
  beforeAll(async () => {
    stores = [await writeStore(700, 1), await writeStore(150, 2)];
  });

  test("of one that is sound: everything, and nothing else", () => {
    for (const store of stores) {
      const salvaged = salvage(sourceOf(store.bytes));

      expect(new Map(salvaged.objects.map(({ key, text }) => [nameOf(key), text]))).toEqual(store.objects);
      expect({ ...salvaged, objects: [] }).toEqual({
        ...{ revision: store.revision, objects: [], lost: [], unmatched: [], outdated: [] },
        ...{ uncertain: [], missing: 0, damagedAt: [] },
      });
    }
  });

  test("of one flipped bit anywhere: all but one object at most, by name, and no wrong value", () =>
    forSeeds(100, (random) => {
      const store = stores[random.int(2)]!;
      const bytes = Buffer.from(store.bytes);
      const at = random.int(bytes.length);
      bytes[at] = bytes[at]! ^ (1 << random.int(8));

      const saved = check(store, salvage(sourceOf(bytes)), true);

      expect(saved, `offset ${at}`).toBeGreaterThan(0.95);
    }));

  test("of a page that is zeros, or another page: what is on the others", () =>
    forSeeds(15, (random) => {
      const store = stores[random.int(2)]!;
      const bytes = Buffer.from(store.bytes);
      const page = () => random.int(bytes.length / PAGE_BYTES) * PAGE_BYTES;
      const at = page();
      if (random.int(2) === 0) bytes.fill(0, at, at + PAGE_BYTES);
      else bytes.copy(bytes, at, ...[page()].flatMap((from) => [from, from + PAGE_BYTES]));

      check(store, salvage(sourceOf(bytes)), false);
    }));

  /** Many pages of noise, or a file cut short, or both. */
  function checkNoise(random: Random): void {
    const store = stores[random.int(2)]!;
    const length = random.int(3) === 0 ? random.int(store.bytes.length) : store.bytes.length;
    const bytes = Buffer.from(store.bytes.subarray(0, length));
    for (let page = 0; page * PAGE_BYTES < length; page++)
      if (random.int(10) === 0)
        bytes.fill(
          Buffer.from([1, 2, 3, 4, 5].map(() => random.int(256))),
          page * PAGE_BYTES,
          Math.min(length, (page + 1) * PAGE_BYTES),
        );

    check(store, salvage(sourceOf(bytes)), false);
  }

  test("of many pages of noise, of a file cut short, of no store at all: never a wrong value", () =>
    forSeeds(10, checkNoise));

  // 80 gave a value that was not the last.
  test.each([80])("of noise that once found something: never a wrong value (seed %i)", (seed) =>
    checkNoise(createSeededRandom(seed)),
  );

  // A key of nine bytes, of which the second to the fifth say 0 for the first four thousand million revisions.
  test.each([1, 2, 3, 4, 5])("of a key that says a revision beyond all others, by its byte %i", (byte) => {
    for (const store of stores) {
      const bytes = Buffer.from(store.bytes);
      const key = writeKey(store.revision - 3);
      for (let at = bytes.indexOf(key); at >= 0; at = bytes.indexOf(key, at + 1)) bytes[at + byte] = 3;

      const salvaged = salvage(sourceOf(bytes));

      expect(check(store, salvaged, true)).toBeGreaterThan(0.95);
      expect(salvaged.revision).toBe(store.revision);
      expect(salvaged.unmatched.length).toBeLessThan(3);
    }
  });

  test("with both meta pages gone the last commit is found by its pages", () => {
    for (const store of stores) {
      const bytes = Buffer.from(store.bytes);
      const { transaction } = readMeta(sourceOf(bytes));
      bytes.fill(0, 0, 2 * PAGE_BYTES);

      const salvaged = salvage(sourceOf(bytes));

      expect(transaction).toBeGreaterThan(100);
      expect(new Map(salvaged.objects.map(({ key, text }) => [nameOf(key), text]))).toEqual(store.objects);
      expect(salvaged.damagedAt).toEqual([0, PAGE_BYTES]);
    }
  });
});
