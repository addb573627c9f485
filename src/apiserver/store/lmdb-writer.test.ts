import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { silentLogger } from "../../base/log.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import type { Changes, Environment, Purpose } from "./lmdb-environment.ts";
import { Writer } from "./lmdb-writer.ts";
import { CommittedState } from "./state.ts";
import {
  StoreError,
  type StoreEvent,
  type StoreKey,
  type WriteOutcome,
  type CreateOutcome,
} from "./store.ts";

/** A disk that answers when it is told to. */
class ScriptedDisk implements Environment {
  readonly commits: Changes[] = [];
  isFullFor: readonly Purpose[] = [];
  readonly #answers: (StoreError | "hold")[] = [];
  #release: (() => void) | undefined;

  /** What the next commits meet; after that all succeed. */
  meets(...answers: (StoreError | "hold")[]): void {
    this.#answers.push(...answers);
  }

  release(): void {
    this.#release?.();
  }

  async commit(changes: Changes, purpose: Purpose = "growth"): Promise<void> {
    if (this.isFullFor.includes(purpose)) throw full();
    const answer = this.#answers.shift();
    if (answer === "hold") await new Promise<void>((resolve) => (this.#release = resolve));
    if (answer instanceof StoreError) throw answer;
    this.commits.push(changes);
  }

  shortage(): StoreError | undefined {
    return this.isFullFor.includes("growth") ? full() : undefined;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function given(options: { historyMsMin?: number; historyRevisionsMin?: number } = {}) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const disk = new ScriptedDisk();
  const state = new CommittedState(clock, options, 1);
  const writer = new Writer({ clock, log: silentLogger, environment: disk }, state);
  const submit = (type: StoreEvent["type"], name: string, text: string, expected?: number) =>
    new Promise<CreateOutcome | WriteOutcome>((resolve, reject) =>
      writer.submit({ type, key: pod(name), render: () => text, expected, resolve, reject }),
    );
  return {
    scheduler,
    disk,
    state,
    writer,
    submit,
    create: (name: string, text = name) => submit("created", name, text),
    update: (name: string, text: string, expected: number) => submit("updated", name, text, expected),
  };
}

const full = () => new StoreError("Full", "no room");
const broken = () => new StoreError("WriteFailed", "input/output error");
const failure = (promise: Promise<unknown>) => promise.catch((error: unknown) => error);

describe("group commit", () => {
  test("nothing of a write is visible before it is on disk, and then all of it is", async () => {
    const { disk, state, create, scheduler } = given();
    const watch = state.watch({ resource: "pods", afterRevision: 1 }, () => undefined);
    disk.meets("hold");

    const written = create("a");
    await scheduler.runFor(0);
    const before = [state.revision, state.get(pod("a")), [...state.scan({ resource: "pods" })], watch.take()];
    disk.release();
    await written;

    expect(before).toEqual([1, undefined, [], undefined]);
    expect(state.revision).toBe(2);
    expect(state.get(pod("a"))?.text).toBe("a");
    expect(watch.take()?.object.revision).toBe(2);
  });

  test("what arrives during a commit shares the next one", async () => {
    const { disk, create, scheduler } = given();
    disk.meets("hold");
    const first = create("first");
    await scheduler.runFor(0);

    const others = Array.from({ length: 63 }, (_, index) => create(`p${index}`));
    disk.release();
    await Promise.all([first, ...others]);

    expect(disk.commits.map(({ puts }) => puts.length)).toEqual([1, 63]);
  });

  test("a commit takes a bounded number of writes", async () => {
    const { disk, create } = given();

    await Promise.all(Array.from({ length: 2_500 }, (_, index) => create(`p${index}`)));

    expect(disk.commits.map(({ puts }) => puts.length)).toEqual([1_000, 1_000, 500]);
  });

  test("more writes than may wait are refused at once, the others are written", async () => {
    const { disk, state, create, scheduler } = given();
    disk.meets("hold");
    const first = create("first");
    await scheduler.runFor(0);

    const others = Array.from({ length: 10_001 }, (_, index) => failure(create(`p${index}`)));
    const refused = await others.at(-1);
    disk.release();
    await Promise.all([first, ...others]);

    expect(refused).toMatchObject({ code: "Overloaded" });
    expect(state.revision).toBe(10_002);
  });

  test("a disk that does not answer for long is reported as stalled, until it answers", async () => {
    const { disk, writer, create, scheduler } = given();
    disk.meets("hold");
    const written = create("a");

    await scheduler.runFor(9_000);
    const early = writer.health;
    await scheduler.runFor(2_000);
    const late = writer.health;
    disk.release();
    await written;

    expect([early.kind, late, writer.health.kind]).toEqual(["ok", { kind: "stalled", forMs: 11_000 }, "ok"]);
  });
});

describe("a full disk", () => {
  test("fails the writes it has no room for and leaves no gap for the next", async () => {
    const { disk, state, writer, create } = given();
    await create("a");
    disk.isFullFor = ["growth"];

    const refused = await Promise.all([failure(create("b")), failure(create("c"))]);
    const health = writer.health;
    disk.isFullFor = [];
    await create("d");

    expect(refused).toEqual([full(), full()]);
    expect(health.kind).toBe("full");
    expect(writer.health).toEqual({ kind: "ok" });
    expect([...state.scan({ resource: "pods" })].map(({ revision, text }) => [text, revision])).toEqual([
      ["a", 2],
      ["d", 3],
    ]);
  });

  test("whoever lost against a write that failed is failed with it; who lost against a committed one is told", async () => {
    const { disk, create, update } = given();
    await create("a", "committed");
    disk.isFullFor = ["growth", "steady", "removal"];

    const [won, lost, old, taken] = await Promise.all([
      failure(update("a", "wins", 2)),
      failure(update("a", "loses", 2)),
      failure(update("b", "is not there", 1)),
      failure(create("c")),
    ]);

    expect([won, lost, taken]).toEqual([full(), full(), full()]);
    expect(old).toEqual({ kind: "conflict" });
  });

  for (const [what, isFullFor, outcomes] of [
    ["of history alone", [], ["committed", "committed", "committed", "committed"]],
    ["for what grows", ["growth"], ["Full", "Full", "committed", "committed"]],
    ["for all but what lets go", ["growth", "steady"], ["Full", "Full", "Full", "committed"]],
    ["to the last byte", ["growth", "steady", "removal"], ["Full", "Full", "Full", "Full"]],
  ] as const) {
    test(`full ${what}: a create, an update that grows, one that does not, a deletion`, async () => {
      const { disk, submit, create, update } = given();
      for (const name of ["a", "b", "c"]) await create(name, "x".repeat(2_000));
      if (isFullFor.length === 0) disk.meets(full());
      disk.isFullFor = isFullFor;

      const found = [
        await failure(create("d")),
        await failure(update("a", "x".repeat(4_000), 2)),
        await failure(update("b", "x".repeat(2_300), 3)),
        await failure(submit("deleted", "c", "last words", 4)),
      ].map((end) => (end instanceof StoreError ? end.code : (end as WriteOutcome).kind));

      expect(found).toEqual(outcomes);
    });
  }

  test("watchers go on from memory, also over what the file has forgotten", async () => {
    const { disk, state, submit, create, update } = given();
    await create("a");
    await update("a", "b", 2);
    disk.isFullFor = ["growth"];
    await submit("deleted", "a", "last words", 3);

    const watch = state.watch({ resource: "pods", afterRevision: 1 }, () => undefined);

    expect([1, 2, 3].map(() => watch.take()?.object.text)).toEqual(["a", "b", "last words"]);
    expect(disk.commits.at(-1)?.removes).toHaveLength(1);
  });
});

describe("a broken disk", () => {
  test("takes no more writes: not those that wait, not later ones; reads and watches go on", async () => {
    const { disk, state, writer, create, scheduler } = given();
    await create("a");
    const watch = state.watch({ resource: "pods", afterRevision: 1 }, () => undefined);
    disk.meets("hold", broken());
    const held = create("b");
    await scheduler.runFor(0);
    const waiting = failure(create("c"));
    await scheduler.runFor(0);

    disk.release();
    await held;
    const refused = [await waiting, await failure(create("d"))];

    expect(refused).toEqual([broken(), broken()]);
    expect(writer.health).toEqual({ kind: "failed", why: broken().message });
    expect(disk.commits).toHaveLength(2);
    expect([watch.take()?.object.text, watch.take()?.object.text, watch.take()]).toEqual([
      "a",
      "b",
      undefined,
    ]);
    expect(state.get(pod("b"))?.text).toBe("b");
  });
});

describe("stopping", () => {
  test("the commit under way is finished, what waits is refused", async () => {
    const { disk, state, writer, create, scheduler } = given();
    disk.meets("hold");
    const underWay = create("a");
    await scheduler.runFor(0);
    const waiting = failure(create("b"));

    const stopped = writer.stop(new StoreError("Closed", "closed"));
    disk.release();
    await stopped;

    expect(await underWay).toMatchObject({ kind: "committed" });
    expect(await waiting).toMatchObject({ code: "Closed" });
    expect(state.revision).toBe(2);
  });
});

describe("compaction of the file", () => {
  async function withVersions(count: number) {
    const world = given({ historyMsMin: 0, historyRevisionsMin: 1_000_000 });
    await world.create("a", "1");
    for (let revision = 2; revision <= count; revision++) await world.update("a", `${revision}`, revision);
    world.disk.commits.length = 0;
    return world;
  }

  test("removes in slices, each with the head that says how far it got", async () => {
    const { disk, state, writer } = await withVersions(200);

    writer.discard(state.forgetBefore(state.revision));
    await writer.compact();

    expect(disk.commits.map(({ puts, removes }) => [puts.length, removes.length])).toEqual([
      [1, 63],
      [1, 64],
      [1, 64],
      [1, 8],
    ]);
  });

  test("rides along with writes, which wait for one slice at most", async () => {
    const { disk, state, writer, create } = await withVersions(1_000);

    writer.discard(state.forgetBefore(state.revision));
    const compacted = writer.compact();
    await Promise.all(Array.from({ length: 300 }, (_, index) => create(`p${index}`)));
    await compacted;

    const [first, ...rest] = disk.commits;
    expect([first?.puts.length, first?.removes.length]).toEqual([301, 255]);
    expect(rest.reduce((sum, { removes }) => sum + removes.length, 255)).toBe(999);
  });

  test("that failed is done again by the next commit", async () => {
    const { disk, state, writer, create } = await withVersions(10);
    disk.isFullFor = ["growth", "steady", "removal"];

    writer.discard(state.forgetBefore(state.revision));
    const refused = await failure(writer.compact());
    disk.isFullFor = [];
    await create("b");

    expect(refused).toMatchObject({ code: "Full" });
    expect(disk.commits.map(({ puts, removes }) => [puts.length, removes.length])).toEqual([[2, 9]]);
  });

  test("with nothing to forget touches no disk", async () => {
    const { disk, state, writer } = given();

    writer.discard(state.forgetBefore(5));
    await writer.compact();

    expect(disk.commits).toEqual([]);
  });
});

function pod(name: string): StoreKey {
  return { resource: "pods", namespace: "default", name };
}
