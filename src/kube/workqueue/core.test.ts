import { describe, expect, test } from "vitest";
import { WorkQueueCore } from "./core.ts";

const backoff = { initialMs: 1_000, maxMs: 300_000 };

function queueOf(...keys: string[]): WorkQueueCore<string> {
  const queue = new WorkQueueCore<string>({ backoff });
  for (const key of keys) queue.add(key, 0);
  return queue;
}

/** Takes and finishes until nothing is ready. */
function drain(queue: WorkQueueCore<string>, nowMs = 0): string[] {
  const order: string[] = [];
  for (let taken = queue.take(nowMs); taken !== undefined; taken = queue.take(nowMs)) {
    order.push(taken.key);
    queue.done(taken.key, nowMs);
  }
  return order;
}

describe("one key", () => {
  test("added three times while it waits, it is worked on once", () => {
    const queue = queueOf("a", "b", "a", "a");

    expect(drain(queue)).toEqual(["a", "b"]);
  });

  test("added while in work, it is not handed to a second worker but comes once more afterwards", () => {
    const queue = queueOf("a");
    queue.take(0);

    queue.add("a", 1);
    queue.add("a", 2);

    expect(queue.take(3)).toBeUndefined();
    queue.done("a", 4);
    expect(queue.take(5)).toEqual({ key: "a", waitedMs: 4 });
    queue.done("a", 6);
    expect(queue.take(7)).toBeUndefined();
  });

  test("giving back a key that nobody took is a broken invariant", () => {
    expect(() => queueOf("a").done("a", 0)).toThrow(/done\(a\), which no worker has/);
  });
});

describe("delays", () => {
  test("a delayed key is ready when its time has come, and not before", () => {
    const queue = queueOf();
    queue.addAt("a", 500);

    queue.promote(499);
    expect(queue.depth).toBe(0);

    queue.promote(500);
    expect(drain(queue)).toEqual(["a"]);
  });

  test("of two planned times the earlier counts, whichever came first", () => {
    const queue = queueOf();
    queue.addAt("a", 500);
    queue.addAt("a", 900);
    queue.addAt("b", 900);
    queue.addAt("b", 500);

    queue.promote(500);

    expect(drain(queue).sort()).toEqual(["a", "b"]);
    expect(queue.delayed).toBe(0);
  });

  test("an event does not cancel a retry that waits: the key comes for both", () => {
    const queue = queueOf("a");
    drain(queue);
    queue.retry("a", 0);

    queue.add("a", 10);

    expect(drain(queue)).toEqual(["a"]);
    queue.promote(1_000);
    expect(drain(queue)).toEqual(["a"]);
  });

  test("a retry and a later planned look both happen", () => {
    const queue = queueOf();
    queue.addAt("a", 60_000);
    queue.retry("a", 0);

    queue.promote(1_000);
    expect(drain(queue)).toEqual(["a"]);
    expect(queue.nextDueMs).toBe(60_000);

    queue.promote(60_000);
    expect(drain(queue)).toEqual(["a"]);
  });
});

describe("backoff", () => {
  test("doubles from the first failure to the cap, each key on its own", () => {
    const queue = queueOf();

    const delays = Array.from({ length: 10 }, () => queue.retry("a", 0) / 1_000);

    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    expect(queue.retry("b", 0)).toBe(1_000);
  });

  test("forget starts the count anew and drops the retry that waits, but not a planned look", () => {
    const queue = queueOf();
    queue.retry("a", 0);
    queue.retry("a", 0);
    queue.addAt("a", 9_000);

    queue.forget("a");

    expect(queue.nextDueMs).toBe(9_000);
    expect(queue.retry("a", 0)).toBe(1_000);
  });

  for (const [title, arrange, ready] of [
    ["in backoff", (queue: WorkQueueCore<string>) => queue.retry("a", 0), ["a"]],
    ["only planned for later", (queue: WorkQueueCore<string>) => queue.addAt("a", 5_000), []],
    ["unknown", () => undefined, []],
    ["ready", (queue: WorkQueueCore<string>) => queue.add("a", 0), ["a"]],
  ] as const) {
    test(`a cause that resets the backoff of a key ${title} makes ready: [${ready.join()}]`, () => {
      const queue = queueOf();
      arrange(queue);

      queue.resetBackoff("a", 1);

      expect(drain(queue, 1)).toEqual(ready);
      expect(queue.failures("a")).toBe(0);
    });
  }

  test("a cause that arrives while the key is failing brings it back at once", () => {
    const queue = queueOf("a");
    queue.take(0);

    queue.resetBackoff("a", 1);
    queue.retry("a", 2);
    queue.done("a", 2);

    expect(queue.take(3)?.key).toBe("a");
  });
});

describe("lanes", () => {
  const laneOf = (key: string) => key.slice(0, key.indexOf("/"));

  test("a lane of 10,000 keys delays a lane of one by one key", () => {
    const queue = new WorkQueueCore<string>({ backoff, laneOf });
    for (let index = 0; index < 10_000; index++) queue.add(`node-a/${index}`, 0);
    queue.add("node-b/0", 0);

    const order = drain(queue);

    expect(order.slice(0, 3)).toEqual(["node-a/0", "node-b/0", "node-a/1"]);
    expect(order).toHaveLength(10_001);
  });

  test("a lane at its limit waits for one of its own keys while others go on", () => {
    const queue = new WorkQueueCore<string>({ backoff, laneOf, perLaneMax: 2 });
    for (const key of ["a/1", "a/2", "a/3", "b/1"]) queue.add(key, 0);

    const first = [queue.take(0), queue.take(0), queue.take(0)].map((taken) => taken?.key);
    expect(first).toEqual(["a/1", "b/1", "a/2"]);
    expect(queue.take(0)).toBeUndefined();
    expect(queue.depth).toBe(1);

    queue.done("b/1", 1);
    expect(queue.take(1)).toBeUndefined();
    queue.done("a/1", 1);
    expect(queue.take(1)?.key).toBe("a/3");
  });

  test("a key that changes its lane while in work counts where it was taken", () => {
    let lane = "attach";
    const queue = new WorkQueueCore<string>({ backoff, laneOf: () => lane, perLaneMax: 1 });
    queue.add("va", 0);
    queue.take(0);

    lane = "detach";
    queue.add("va", 1);
    queue.add("other", 1);
    expect(queue.take(2)?.key).toBe("other");
    queue.done("va", 3);

    expect(queue.take(3)).toBeUndefined();
    queue.done("other", 4);
    expect(queue.take(4)?.key).toBe("va");
  });
});

test("the oldest waiting key is known although lanes take turns", () => {
  const queue = new WorkQueueCore<string>({ backoff, laneOf: (key) => key[0]!, perLaneMax: 1 });
  for (const [at, key] of ["a1", "a2", "b1"].entries()) queue.add(key, at);

  queue.take(5);
  queue.take(5);

  expect(queue.oldestAddedMs).toBe(1);
});
