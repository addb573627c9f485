import { expect, test } from "vitest";
import { createLogger } from "../../base/log.ts";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { runWorkers, type Outcome } from "./controller.ts";
import { createWorkQueue } from "./work-queue.ts";

function setup(reconcile: (key: string, signal: AbortSignal) => Promise<Outcome>, workers = 1) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const metrics = createPromMetrics();
  const lines: string[] = [];
  const log = createLogger((level, message, { key }) => lines.push(`${level} ${message} ${String(key)}`));
  const queue = createWorkQueue<string>(
    { clock, metrics },
    { name: "q", backoff: { initialMs: 1_000, maxMs: 60_000 } },
  );
  const stop = new AbortController();
  let ended = false;
  const running = runWorkers({ queue, clock, log, metrics }, { workers, reconcile }, stop.signal).then(() => {
    ended = true;
  });
  return { scheduler, clock, metrics, lines, queue, stop, running, hasEnded: () => ended };
}

test("one bad key is tried again with backoff while the others are worked on", async () => {
  const seen: string[] = [];
  const world = setup(async (key) => {
    seen.push(`${key}@${world.clock.now()}`);
    if (key === "bad") throw new Error("boom");
    return { kind: "done" };
  });

  world.queue.add("bad");
  world.queue.add("good");
  await world.scheduler.runFor(8_000);

  expect(seen).toEqual(["bad@0", "good@0", "bad@1000", "bad@3000", "bad@7000"]);
  expect(await world.metrics.render()).toContain('mooring_reconciles_total{name="q",outcome="threw"} 4\n');
});

test("a failure is logged when it begins, when it changes and when it ends", async () => {
  const errors = ["x", "x", "y", undefined];
  const world = setup(async () => {
    const error = errors.shift();
    return error === undefined ? { kind: "done" } : { kind: "retry", error: new Error(error) };
  });

  world.queue.add("a");
  await world.scheduler.runFor(60_000);

  expect(world.lines).toEqual([
    "warn reconcile failed a",
    "warn reconcile failed a",
    "info reconcile recovered a",
  ]);
});

test("`after` looks again then, and counts failures from zero", async () => {
  const outcomes: Outcome[] = [
    { kind: "retry" },
    { kind: "after", ms: 30_000 },
    { kind: "retry" },
    { kind: "done" },
  ];
  const seen: number[] = [];
  const world = setup(async () => {
    seen.push(world.clock.now());
    return outcomes.shift() ?? { kind: "done" };
  });

  world.queue.add("a");
  await world.scheduler.runFor(60_000);

  expect(seen).toEqual([0, 1_000, 31_000, 32_000]);
});

test("a terminal outcome is not tried again until something happens to the key", async () => {
  let tries = 0;
  const world = setup(async () => {
    tries++;
    return { kind: "terminal", error: new Error("no such driver") };
  });

  world.queue.add("a");
  await world.scheduler.runFor(3_600_000);
  expect(tries).toBe(1);

  world.queue.add("a");
  await world.scheduler.runFor(1);
  expect(tries).toBe(2);
  expect(world.lines).toEqual(["error reconcile gave up a"]);
});

test("`after` of a time that has come lets the timer run that ends the wait", async () => {
  let isOver = false;
  let looks = 0;
  const world = setup(async () => {
    // Without the pause the time would stand still, and this test would not end.
    if (isOver || ++looks > 1_000) return { kind: "done" };
    return { kind: "after", ms: Math.max(0, 500 - world.clock.now()) };
  });

  world.queue.add("a");
  // A hair later than the deadline it is for, as a clock of another rate has it.
  world.clock.after(500.000_001, () => (isOver = true));
  await world.scheduler.runFor(600);

  expect(isOver).toBe(true);
  expect(looks).toBe(2);
});

test("after a stop no key begins, and the call resolves when those in work have ended", async () => {
  const seen: string[] = [];
  const world = setup(async (key) => {
    seen.push(key);
    await world.clock.sleep(5_000);
    return { kind: "done" };
  }, 2);
  for (const key of ["a", "b", "c"]) world.queue.add(key);
  await world.scheduler.runFor(1_000);

  world.stop.abort();
  await world.scheduler.runFor(3_000);
  expect(world.hasEnded()).toBe(false);
  await world.scheduler.runFor(1_000);

  expect(world.hasEnded()).toBe(true);
  expect(seen).toEqual(["a", "b"]);
  expect(world.queue.depth).toBe(1);
});

test("a reconcile cut short by the stop is no failure of its key", async () => {
  const world = setup(async (_key, signal) => {
    await world.clock.sleep(5_000, signal);
    return { kind: "done" };
  });
  world.queue.add("a");
  await world.scheduler.runFor(1_000);

  world.stop.abort();
  await world.running;

  expect(world.lines).toEqual([]);
  expect(world.queue.failures("a")).toBe(0);
  expect(world.queue.depth).toBe(1);
});
