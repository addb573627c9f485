import { afterEach, describe, expect, test } from "vitest";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import type { Clock } from "../../src/base/clock.ts";
import { SimScheduler } from "../../src/sim/scheduler.ts";
import { positionAfter } from "../../src/apiserver/store/keys.ts";
import {
  CompactedError,
  HISTORY_ENTRY_CHARS,
  StoreError,
  type ObjectStore,
  type StoredObject,
  type StoreKey,
  type StoreWatch,
} from "../../src/apiserver/store/store.ts";

/** Bounds small enough to reach in a test. */
export interface StoreContractOptions {
  readonly historyMsMin: number;
  readonly historyRevisionsMin: number;
  readonly historyCharsMax: number;
  readonly queueEventsMax: number;
  readonly queueBytesMax: number;
}

/** What every ObjectStore promises; run against each implementation. */
export function describeStore(
  name: string,
  create: (clock: Clock, options: StoreContractOptions) => ObjectStore | Promise<ObjectStore>,
): void {
  const opened: ObjectStore[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
  });

  async function given(options: Partial<StoreContractOptions> = {}) {
    const scheduler = new SimScheduler(createSeededRandom(1));
    const store = await create(scheduler.createClock(), {
      historyMsMin: 300_000,
      historyRevisionsMin: 10,
      historyCharsMax: 100_000,
      queueEventsMax: 5,
      queueBytesMax: 1_000,
      ...options,
    });
    opened.push(store);
    return { store, scheduler, put: (key: StoreKey, value: string) => put(store, key, value) };
  }

  describe(`${name}: revisions and conditions`, () => {
    test("an empty store is at revision 1, and every write takes the next", async () => {
      const { store, put } = await given();
      expect(store.revision).toBe(1);

      await put(pod("a"), "1");
      await put(pod("a"), "2");
      await remove(store, pod("a"));

      expect(store.revision).toBe(4);
    });

    test("an object carries the revision of its last write", async () => {
      const { store } = await given();

      const outcome = await store.create(pod("a"), (revision) => `at ${revision}`);

      expect(outcome.kind).toBe("committed");
      expect(store.get(pod("a"))).toMatchObject({ revision: 2, text: "at 2" });
    });

    test("a name is taken once: the second create learns who holds it and makes no revision", async () => {
      const { store } = await given();
      await store.create(pod("a"), () => "first");

      const outcome = await store.create(pod("a"), () => "second");

      expect(outcome).toMatchObject({ kind: "exists", object: { text: "first" } });
      expect(store.revision).toBe(2);
    });

    test("of a hundred updates that read the same version, one is committed", async () => {
      const { store, put } = await given();
      const { revision } = await put(pod("a"), "read by all");

      const outcomes = await Promise.all(
        Array.from({ length: 100 }, (_, writer) =>
          store.update(pod("a"), () => `${writer}`, { expected: revision }),
        ),
      );

      expect(outcomes.filter(({ kind }) => kind === "committed")).toHaveLength(1);
      expect(store.revision).toBe(revision + 1);
    });

    test("of a hundred creates of one name, one is committed and the others learn whose it is", async () => {
      const { store } = await given();

      const outcomes = await Promise.all(
        Array.from({ length: 100 }, (_, writer) => store.create(pod("a"), () => `${writer}`)),
      );

      const winner = store.get(pod("a"));
      expect(outcomes.filter(({ kind }) => kind === "committed")).toHaveLength(1);
      expect(outcomes.map((outcome) => "object" in outcome && outcome.object.text)).toEqual(
        Array.from({ length: 100 }, () => winner?.text),
      );
    });

    test("whoever is told of a conflict can read what won", async () => {
      const { store, put } = await given();
      const { revision } = await put(pod("a"), "read by both");
      void store.update(pod("a"), () => "won", { expected: revision });

      const outcome = await store.update(pod("a"), () => "lost", { expected: revision });

      expect(outcome.kind).toBe("conflict");
      expect(store.get(pod("a"))?.text).toBe("won");
    });

    test("writes of one moment take revisions without a gap, and a text that fails takes none", async () => {
      const { store } = await given();

      const outcomes = await Promise.allSettled(
        Array.from({ length: 10 }, (_, writer) =>
          store.create(pod(`p${writer}`), (revision) => {
            if (writer === 4) throw new Error("no words");
            return `at ${revision}`;
          }),
        ),
      );

      expect(outcomes.map(({ status }) => status).filter((status) => status === "rejected")).toHaveLength(1);
      expect(texts(store.scan({ resource: "pods" }))).toEqual(
        [2, 3, 4, 5, 6, 7, 8, 9, 10].map((revision) => `at ${revision}`),
      );
      expect(store.revision).toBe(10);
    });

    test("an object created and deleted in one moment can be followed step by step", async () => {
      const { store } = await given();
      const watch = store.watch({ resource: "pods", afterRevision: 1 }, () => undefined);

      const created = store.create(pod("a"), () => "first");
      const updated = store.update(pod("a"), () => "second", { expected: 2 });
      const deleted = store.delete(pod("a"), () => "last words", { expected: 3 });
      await Promise.all([created, updated, deleted]);

      expect(store.get(pod("a"))).toBeUndefined();
      expect(drain(watch)).toEqual([
        "created a 2 first <- nothing",
        "updated a 3 second <- first",
        "deleted a 4 last words <- second",
      ]);
    });

    test("after close writes are refused and reads go on", async () => {
      const { store, put } = await given();
      await put(pod("a"), "1");
      const watch = store.watch({ resource: "pods", afterRevision: 1 }, () => undefined);
      expect(store.health).toEqual({ kind: "ok" });

      await store.close();

      const refused = await store.create(pod("b"), () => "2").catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(StoreError);
      expect(refused).toMatchObject({ code: "Closed" });
      expect(store.health.kind).toBe("failed");
      expect(texts(store.scan({ resource: "pods" }))).toEqual(["1"]);
      expect(drain(watch)).toEqual(["created a 2 1 <- nothing"]);
      await store.close();
    });

    test("a delete that read an old version does not happen", async () => {
      const { store, put } = await given();
      const { revision } = await put(pod("a"), "1");
      await put(pod("a"), "2");

      const outcome = await store.delete(pod("a"), () => "gone", { expected: revision });

      expect(outcome.kind).toBe("conflict");
      expect(store.get(pod("a"))?.text).toBe("2");
    });

    test("updating or deleting what is not there is a conflict", async () => {
      const { store } = await given();

      expect((await store.update(pod("a"), () => "", { expected: 1 })).kind).toBe("conflict");
      expect((await store.delete(pod("a"), () => "", { expected: 1 })).kind).toBe("conflict");
    });

    test("a name can be used again after its object is deleted", async () => {
      const { store, put } = await given();
      await put(pod("a"), "1");
      await remove(store, pod("a"));

      await store.create(pod("a"), () => "again");

      expect(store.get(pod("a"))?.text).toBe("again");
    });

    test("one resource does not see another's objects of the same name", async () => {
      const { store, put } = await given();
      await put(pod("a"), "pod");

      expect(store.get({ ...pod("a"), resource: "secrets" })).toBeUndefined();
      expect(texts(store.scan({ resource: "secrets" }))).toEqual([]);
    });

    test("whoever waits for a revision is told when it is reached", async () => {
      const { store, put } = await given();
      let reached = false;
      const waiting = store.reach(3, new AbortController().signal).then(() => (reached = true));
      await put(pod("a"), "2");
      await Promise.resolve();
      expect(reached).toBe(false);

      await put(pod("a"), "3");
      await waiting;

      expect(reached).toBe(true);
    });

    test("whoever gives up waiting for a revision gets the reason back", async () => {
      const { store } = await given();
      const controller = new AbortController();
      const waiting = store.reach(99, controller.signal);

      controller.abort(new Error("enough"));

      await expect(waiting).rejects.toThrow("enough");
    });
  });

  describe(`${name}: scans`, () => {
    test("objects come by namespace, then name, bytewise", async () => {
      const { store, put } = await given();
      for (const [namespace, object] of [
        ["b", "a"],
        ["a-b", "a"],
        ["a", "z"],
        ["a", "\u{10000}"],
        ["a", "\uffee"],
        ["a", "b1"],
        ["a", "b"],
        ["a", "b-1"],
      ] as const) {
        await put(pod(object, namespace), `${namespace}/${object}`);
      }

      expect(texts(store.scan({ resource: "pods" }))).toEqual([
        "a/b",
        "a/b-1",
        "a/b1",
        "a/z",
        "a/\uffee",
        "a/\u{10000}",
        "a-b/a",
        "b/a",
      ]);
      expect(texts(store.scan({ resource: "pods", namespace: "a-b" }))).toEqual(["a-b/a"]);
    });

    test("a scan sees what came in any order since the last one, few or many", async () => {
      const { store, put } = await given();
      for (const object of ["m", "c", "x"]) await put(pod(object), object);
      const few = texts(store.scan({ resource: "pods" }));

      for (let write = 99; write >= 10; write--) await put(pod(`n${write}`), `n${write}`);

      const many = texts(store.scan({ resource: "pods" }));
      expect(few).toEqual(["c", "m", "x"]);
      expect(many).toHaveLength(93);
      expect(many).toEqual([...many].sort());
    });

    test("a scan can begin after any key, whether or not the key is still there", async () => {
      const { store, put } = await given();
      for (const object of ["a", "b", "c", "d"]) await put(pod(object), object);
      await remove(store, pod("b"));

      expect(texts(store.scan({ resource: "pods", from: positionAfter(pod("b")) }))).toEqual(["c", "d"]);
    });

    test("a position from another namespace cannot widen a scan", async () => {
      const { store, put } = await given();
      await put(pod("a", "one"), "one/a");
      await put(pod("a", "two"), "two/a");

      expect(
        texts(store.scan({ resource: "pods", namespace: "two", from: positionAfter(pod("a", "a")) })),
      ).toEqual(["two/a"]);
      expect(
        texts(store.scan({ resource: "pods", namespace: "one", from: positionAfter(pod("a", "two")) })),
      ).toEqual([]);
    });

    test("the state at an old revision stays what it was", async () => {
      const { store, put } = await given();
      await put(pod("a"), "a1");
      await put(pod("b"), "b1");
      const then = store.revision;
      await put(pod("a"), "a2");
      await remove(store, pod("b"));
      await put(pod("c"), "c1");

      expect(texts(store.scan({ resource: "pods", atRevision: then }))).toEqual(["a1", "b1"]);
      expect(texts(store.scan({ resource: "pods" }))).toEqual(["a2", "c1"]);
    });
  });

  describe(`${name}: history`, () => {
    test("after compaction older states are refused, that revision and later ones are not", async () => {
      const { store, put } = await given();
      await put(pod("a"), "a1");
      await put(pod("a"), "a2");
      await put(pod("a"), "a3");

      await store.compact(3);

      expect(() => store.scan({ resource: "pods", atRevision: 2 })).toThrow(CompactedError);
      expect(texts(store.scan({ resource: "pods", atRevision: 3 }))).toEqual(["a2"]);
      expect(texts(store.scan({ resource: "pods" }))).toEqual(["a3"]);
    });

    test("a deleted object leaves nothing behind once its deletion is compacted", async () => {
      const { store, put } = await given();
      await put(pod("a"), "a1");
      await remove(store, pod("a"));

      await store.compact(store.revision);
      await put(pod("a"), "again");

      expect(texts(store.scan({ resource: "pods" }))).toEqual(["again"]);
      expect(texts(store.scan({ resource: "pods", atRevision: store.revision - 1 }))).toEqual([]);
    });

    test("history is kept for its time, even when there is much of it", async () => {
      const { store, scheduler, put } = await given();
      for (let write = 0; write < 50; write++) await put(pod("a"), `${write}`);
      await scheduler.runFor(299_000);

      await put(pod("a"), "last");

      expect(store.compactedRevision).toBe(1);
    });

    test("history is kept in its number, even when all of it is old", async () => {
      const { store, scheduler, put } = await given();
      for (let write = 0; write < 8; write++) await put(pod("a"), `${write}`);
      await scheduler.runFor(3_600_000);

      await put(pod("a"), "last");

      expect(store.compactedRevision).toBe(1);
    });

    test("what is both old and more than enough is forgotten", async () => {
      const { store, scheduler, put } = await given();
      for (let write = 0; write < 50; write++) await put(pod("a"), `${write}`);
      await scheduler.runFor(301_000);

      await put(pod("a"), "last");

      expect(store.revision - store.compactedRevision).toBe(10);
    });

    test("what is too much to hold is forgotten before its time, however few writes that leaves", async () => {
      const { store, put } = await given({ historyCharsMax: 20 * (500 + HISTORY_ENTRY_CHARS) });

      for (let write = 0; write < 30; write++) await put(pod("a"), "x".repeat(500));
      const byVolume = store.revision - store.compactedRevision;
      for (let write = 0; write < 30; write++) await put(pod("a"), "x".repeat(5_000));

      expect(byVolume).toBe(20);
      expect(store.revision - store.compactedRevision).toBe(3);
    });
  });

  describe(`${name}: watches`, () => {
    test("every write after the start arrives once, in order, with what it replaced", async () => {
      const { store, put } = await given();
      await put(pod("a"), "before");
      const watch = store.watch({ resource: "pods", afterRevision: store.revision }, () => undefined);

      await put(pod("a"), "changed");
      await put(pod("b"), "new");
      await remove(store, pod("a"));

      expect(drain(watch)).toEqual([
        "updated a 3 changed <- before",
        "created b 4 new <- nothing",
        "deleted a 5 last words <- changed",
      ]);
      expect(watch.state).toBe("open");
    });

    test("writes from before the watch was opened are replayed from the revision asked for", async () => {
      const { store, put } = await given();
      await put(pod("a"), "1");
      await put(pod("b"), "2");
      await put(pod("c"), "3");

      const watch = store.watch({ resource: "pods", afterRevision: 2 }, () => undefined);

      expect(drain(watch)).toEqual(["created b 3 2 <- nothing", "created c 4 3 <- nothing"]);
    });

    test("a replay longer than the queue arrives whole", async () => {
      const { store, put } = await given();
      for (let write = 0; write < 30; write++) await put(pod(`p${write}`), "x");

      const watch = store.watch({ resource: "pods", afterRevision: 1 }, () => undefined);

      expect(drain(watch)).toHaveLength(30);
      expect(watch.state).toBe("open");
    });

    test("other resources and namespaces are not seen", async () => {
      const { store, put } = await given();
      const watch = store.watch({ resource: "pods", namespace: "one", afterRevision: 1 }, () => undefined);

      await put(pod("a", "two"), "x");
      await put({ ...pod("a", "one"), resource: "secrets" }, "x");
      await put(pod("a", "one"), "x");

      expect(drain(watch)).toEqual(["created a 4 x <- nothing"]);
    });

    test("the reader is woken by a write that concerns it, and by no other", async () => {
      const { store, put } = await given();
      let woken = 0;
      const watch = store.watch({ resource: "pods", namespace: "one", afterRevision: 1 }, () => woken++);
      drain(watch);

      await put(pod("a", "two"), "x");
      expect(woken).toBe(0);
      await put(pod("a", "one"), "x");

      expect(woken).toBe(1);
    });

    test("a start in the future is silent until that revision has passed", async () => {
      const { store, put } = await given();
      const watch = store.watch({ resource: "pods", afterRevision: 3 }, () => undefined);
      drain(watch);

      await put(pod("a"), "2");
      await put(pod("a"), "3");
      await put(pod("a"), "4");

      expect(drain(watch)).toEqual(["updated a 4 4 <- 3"]);
    });

    test("a start before the history is expired, at its edge it is not", async () => {
      const { store, put } = await given();
      await put(pod("a"), "2");
      await put(pod("a"), "3");
      await store.compact(2);

      const tooOld = store.watch({ resource: "pods", afterRevision: 1 }, () => undefined);
      const atEdge = store.watch({ resource: "pods", afterRevision: 2 }, () => undefined);

      expect([drain(tooOld), tooOld.state]).toEqual([[], "expired"]);
      expect([drain(atEdge), atEdge.state]).toEqual([["updated a 3 3 <- 2"], "open"]);
    });

    test("a reader that stops reading gets what fitted, then the end; others are not affected", async () => {
      const { store, put } = await given();
      const slow = store.watch({ resource: "pods", afterRevision: 1 }, () => undefined);
      const quick = store.watch({ resource: "pods", afterRevision: 1 }, () => undefined);
      drain(slow);
      const seen: string[] = [];
      drain(quick);

      for (let write = 0; write < 8; write++) {
        await put(pod("a"), `${write}`);
        seen.push(...drain(quick));
      }

      expect(seen).toHaveLength(8);
      expect(quick.state).toBe("open");
      expect(drain(slow)).toHaveLength(5);
      expect(slow.state).toBe("overflowed");
    });

    test("the queue is bounded in bytes as well", async () => {
      const { store, put } = await given();
      const watch = store.watch({ resource: "pods", afterRevision: 1 }, () => undefined);
      drain(watch);

      for (let write = 0; write < 3; write++) await put(pod("a"), "x".repeat(400));

      expect(drain(watch)).toHaveLength(2);
      expect(watch.state).toBe("overflowed");
    });

    test("a closed watch gives nothing and wakes nobody", async () => {
      const { store, put } = await given();
      let woken = 0;
      const watch = store.watch({ resource: "pods", afterRevision: 1 }, () => woken++);
      drain(watch);

      watch.close();
      await put(pod("a"), "x");

      expect(drain(watch)).toEqual([]);
      expect(woken).toBe(0);
    });
  });
}

function pod(name: string, namespace = "default"): StoreKey {
  return { resource: "pods", namespace, name };
}

async function put(store: ObjectStore, key: StoreKey, text: string): Promise<StoredObject> {
  const current = store.get(key);
  const outcome =
    current === undefined
      ? await store.create(key, () => text)
      : await store.update(key, () => text, { expected: current.revision });
  if (outcome.kind !== "committed") throw new Error(`writing ${key.name}: ${outcome.kind}`);
  return outcome.object;
}

async function remove(store: ObjectStore, key: StoreKey): Promise<void> {
  const outcome = await store.delete(key, () => "last words", { expected: store.get(key)?.revision ?? 0 });
  if (outcome.kind !== "committed") throw new Error(`deleting ${key.name}: ${outcome.kind}`);
}

function texts(objects: Iterable<StoredObject>): string[] {
  return [...objects].map(({ text }) => text);
}

function drain(watch: StoreWatch): string[] {
  const lines: string[] = [];
  for (let event = watch.take(); event !== undefined; event = watch.take()) {
    const { object, previous } = event;
    lines.push(
      `${event.type} ${object.key.name} ${object.revision} ${object.text} <- ${previous === undefined ? "nothing" : previous.text}`,
    );
  }
  return lines;
}
