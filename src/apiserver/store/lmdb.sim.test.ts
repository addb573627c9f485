import { copyFileSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeStore } from "../../../test/contract/store.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { openEnvironment } from "./lmdb-environment.ts";
import { bytesOf, pod, put, scratch, viewOf } from "./lmdb-scratch.testing.ts";
import { HEAD_KEY, encodeHead, writeKey } from "./lmdb-records.ts";
import { openLmdbStore, type LmdbStoreOptions } from "./lmdb.ts";

const directory = scratch();

describeStore("lmdb", (clock, options) =>
  openLmdbStore({ clock }, { ...options, directory: directory("contract") }),
);

function given(options: Partial<LmdbStoreOptions> = {}) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const path = directory("store");
  const open = (at = path) =>
    openLmdbStore({ clock: scheduler.createClock() }, { ...options, directory: at });
  return { scheduler, path, open };
}

const failure = (promise: Promise<unknown>) => promise.catch((error: unknown) => error);

describe("a restart", () => {
  test("brings back objects, revisions and history, and a watch goes on from any kept revision", async () => {
    const { open } = given();
    const before = await open();
    for (let write = 0; write < 50; write++) await put(before, pod(`p${write % 7}`), `{"write":${write}}`);
    await before.delete(pod("p3"), () => "last words", { expected: before.get(pod("p3"))?.revision ?? 0 });
    const view = viewOf(before);
    await before.close();

    const after = await open();

    expect(viewOf(after)).toEqual(view);
    for (let revision = 1; revision <= after.revision; revision++) {
      const watch = after.watch({ resource: "pods", afterRevision: revision }, () => undefined);
      expect(watch.take()?.object.revision).toBe(revision < after.revision ? revision + 1 : undefined);
    }
    expect((await put(after, pod("next"), "{}")).revision).toBe(view.revision + 1);
    await after.close();
  });

  test("without a close finds the same: the files are complete after every write", async () => {
    const { open, path } = given();
    const store = await open();
    const elsewhere = directory("killed");
    mkdirSync(elsewhere);

    for (let write = 0; write < 10; write++) {
      await put(store, pod(`p${write % 3}`), `${write}`);
      copyFileSync(join(path, "data.mdb"), join(elsewhere, "data.mdb"));
      const copy = await open(elsewhere);
      expect(viewOf(copy)).toEqual(viewOf(store));
      await copy.close();
    }
    await store.close();
  });

  test("does not reuse the revision of a deletion that was compacted", async () => {
    const { open } = given();
    const before = await open();
    await put(before, pod("a"), "1");
    await before.delete(pod("a"), () => "", { expected: 2 });
    await before.compact(3);
    await before.close();

    const after = await open();

    expect([after.revision, after.compactedRevision]).toEqual([3, 3]);
    expect((await put(after, pod("a"), "again")).revision).toBe(4);
    await after.close();
  });

  test("keeps history for its time, counted from the write, and then lets it go", async () => {
    const { open, scheduler } = given({ historyRevisionsMin: 2 });
    const before = await open();
    for (let write = 0; write < 10; write++) await put(before, pod("a"), `${write}`);
    await before.close();
    await scheduler.runFor(299_000);
    const soon = await open();
    await put(soon, pod("b"), "");
    const kept = soon.compactedRevision;
    await soon.close();

    await scheduler.runFor(2_000);
    const later = await open();
    await put(later, pod("b"), "");

    expect(kept).toBe(1);
    expect(later.revision - later.compactedRevision).toBe(2);
    await later.close();
  });

  test("finds compacted what was compacted, and the space is used again", { timeout: 30_000 }, async () => {
    const { open, path } = given({ historyRevisionsMin: 10, historyCharsMax: 30_000 });
    const text = "x".repeat(3_000);
    const before = await open();
    for (let write = 0; write < 100; write++) await put(before, pod("a"), text);
    const early = statSync(join(path, "data.mdb")).size;
    for (let write = 0; write < 400; write++) await put(before, pod("a"), text);
    await before.compact(before.revision - 5);
    await before.close();

    const after = await open();

    expect(after.compactedRevision).toBe(after.revision - 5);
    expect(statSync(join(path, "data.mdb")).size).toBeLessThan(early * 1.5);
    await after.close();
  });
});

describe("files", () => {
  test("are for their owner alone, also where they came from elsewhere", async () => {
    const { open, path } = given();
    await (await open()).close();
    const elsewhere = directory("copied");
    mkdirSync(elsewhere, { mode: 0o755 });
    writeFileSync(join(elsewhere, "data.mdb"), bytesOf(path), { mode: 0o644 });

    await (await open(elsewhere)).close();

    for (const place of [path, elsewhere]) {
      expect(statSync(place).mode & 0o777).toBe(0o700);
      expect(statSync(join(place, "data.mdb")).mode & 0o777).toBe(0o600);
      expect(statSync(join(place, "lock.mdb")).mode & 0o777).toBe(0o600);
    }
  });

  test("grow far beyond the space that was mapped at first", async () => {
    const { open } = given({ mapBytes: 65_536 });
    const before = await open();
    await Promise.all(
      Array.from({ length: 500 }, (_, index) => put(before, pod(`p${index}`), "x".repeat(20_000))),
    );
    await before.close();

    const after = await open();

    expect([...after.scan({ resource: "pods" })].every(({ text }) => text.length === 20_000)).toBe(true);
    expect(after.revision).toBe(501);
    await after.close();
  });

  test("half made by a start that was killed are made anew", async () => {
    const { open, path } = given();
    mkdirSync(`${path}.partial`);
    writeFileSync(join(`${path}.partial`, "data.mdb"), "half a");

    const store = await open();

    expect(store.revision).toBe(1);
    await store.close();
  });

  test("that cannot be made or opened are named, with the reason", async () => {
    const { open, path } = given();
    writeFileSync(path, "a file");
    const crowded = directory("crowded");
    mkdirSync(crowded);
    writeFileSync(join(crowded, "something"), "");

    expect(await failure(open())).toMatchObject({
      code: "Unusable",
      message: expect.stringMatching(/^Unusable: open the store store-\d+ in .*: a file is in the way$/),
    });
    expect(await failure(open(crowded))).toMatchObject({
      code: "Unusable",
      message: expect.stringContaining("other files are in its place"),
    });
  });
});

describe("a file that is not as it should be", () => {
  async function refusalWith(
    puts: readonly { key: Buffer; value: Buffer }[],
    removes: readonly Buffer[] = [],
  ) {
    const { open, path } = given();
    const store = await open();
    for (let write = 0; write < 5; write++) await put(store, pod(`p${write % 2}`), `${write}`);
    await store.close();
    const environment = openEnvironment(path);
    await environment.commit({ puts, removes });
    await environment.close();
    return failure(open());
  }

  for (const [what, puts, removes, message] of [
    ["of a later format", [{ key: HEAD_KEY, value: Buffer.from([0, 2]) }], [], /^NewerFormat: .*format 2/],
    ["without its head", [], [HEAD_KEY], /^Corrupt: .*the head record is missing/],
    ["with a revision missing", [], [writeKey(4)], /^Corrupt: .*revision 4 is missing before 5/],
    [
      "with an object missing",
      [head(3)],
      [writeKey(3)],
      /^Corrupt: .*revision 5 replaced 3, and it is not there/,
    ],
    ["with two versions of one object", [head(5)], [], /^Corrupt: .*revision 4 should have been compacted/],
    [
      "with a foreign record",
      [{ key: Buffer.from("x"), value: Buffer.from("y") }],
      [],
      /^Corrupt: .*no version writes/,
    ],
    [
      "with another's text",
      [{ key: writeKey(4), value: Buffer.from("{}") }],
      [],
      /^Corrupt: .*revision 4 .*checksum/,
    ],
  ] as const) {
    test(`${what} is refused, and says where it is`, async () => {
      const error = await refusalWith(puts, removes);

      expect(error).toMatchObject({ name: "StoreError", message: expect.stringMatching(message) });
      expect(String(error)).toContain("data.mdb");
    });
  }

  function head(compactedRevision: number) {
    return { key: HEAD_KEY, value: encodeHead({ compactedRevision }) };
  }
});
