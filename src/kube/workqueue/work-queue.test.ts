import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { noMetrics } from "../../base/metrics.ts";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { runWorkers, type Outcome } from "./controller.ts";
import { createWorkQueue } from "./work-queue.ts";

function setup() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const metrics = createPromMetrics();
  const queue = createWorkQueue<string>(
    { clock, metrics },
    { name: "q", backoff: { initialMs: 1_000, maxMs: 60_000 } },
  );
  return { scheduler, clock, metrics, queue, stop: new AbortController() };
}

test("an idle worker gets a key as soon as it is added", async () => {
  const { queue, stop } = setup();
  const taken = queue.take(stop.signal);

  queue.add("a");

  expect(await taken).toBe("a");
});

test("a delayed key comes by itself, and an earlier one added later comes first", async () => {
  const { scheduler, clock, queue, stop } = setup();
  const seen: string[] = [];
  const worker = (async () => {
    for (let key = await queue.take(stop.signal); key !== undefined; key = await queue.take(stop.signal)) {
      seen.push(`${key}@${clock.now()}`);
      queue.done(key);
    }
  })();

  queue.addAfter("late", 5_000);
  queue.addAt("early", 2_000);
  queue.retry("failed");
  await scheduler.runFor(10_000);

  expect(seen).toEqual(["failed@1000", "early@2000", "late@5000"]);
  stop.abort();
  await worker;
});

/** A queue on a clock that counts what would keep the process alive. */
function givenTimers() {
  let [timers, nowMs] = [0, 0];
  const clock = {
    now: () => nowMs++,
    wall: () => new Date(0),
    sleep: () => Promise.resolve(),
    after: () => {
      timers++;
      const cancel = () => {
        timers--;
      };
      return { cancel };
    },
  };
  const queue = createWorkQueue<string>(
    { clock, metrics: noMetrics },
    { name: "q", backoff: { initialMs: 60_000, maxMs: 60_000 } },
  );
  return { clock, queue, stop: new AbortController(), timers: () => timers };
}

test("100,000 delayed keys cost the clock one timer", () => {
  const { queue, stop, timers } = givenTimers();
  void queue.take(stop.signal);

  for (let index = 0; index < 100_000; index++) queue.addAt(String(index), 2_000_000 - index);

  expect(timers()).toBe(1);
  expect(queue.delayed).toBe(100_000);
});

test("once the last worker has stopped, a key that waits for its backoff keeps no process alive", async () => {
  const { clock, queue, stop, timers } = givenTimers();
  let fail: (() => void) | undefined;
  const reconcile = () =>
    new Promise<Outcome>((resolve) => {
      fail = () => resolve({ kind: "retry" });
    });
  const deps = { queue, clock, log: silentLogger, metrics: noMetrics };
  const running = runWorkers(deps, { workers: 3, reconcile }, stop.signal);
  queue.add("fails");
  queue.addAfter("later", 60_000);
  while (fail === undefined) await Promise.resolve();
  expect(timers()).toBe(1);

  stop.abort();
  fail();
  await running;

  expect([timers(), queue.delayed]).toEqual([0, 2]);
  queue.addAfter("after the stop", 60_000);
  expect(timers()).toBe(0);
});

test("what came due while nobody worked is there for the next run, and the rest comes in time", async () => {
  const { scheduler, clock, queue, stop } = setup();
  queue.addAfter("early", 1_000);
  queue.addAfter("late", 5_000);
  await scheduler.runFor(3_000);

  expect(await queue.take(stop.signal)).toBe("early");
  const next = queue.take(stop.signal).then((key) => `${key}@${clock.now()}`);
  await scheduler.runFor(3_000);

  expect(await next).toBe("late@5000");
});

test("64 idle workers are one listener on their signal, and none once they have keys", async () => {
  const { queue, stop } = setup();
  const listeners = () => getEventListeners(stop.signal, "abort").length;

  const taken = Array.from({ length: 64 }, () => queue.take(stop.signal));
  expect(listeners()).toBe(1);
  for (let key = 0; key < 64; key++) queue.add(String(key));

  // In the order in which they came.
  expect(await Promise.all(taken)).toEqual(Array.from({ length: 64 }, (_, key) => String(key)));
  expect(listeners()).toBe(0);
});

test("workers with signals of their own are sent away by their own alone", async () => {
  const { queue, stop } = setup();
  const other = new AbortController();
  const leaving = [queue.take(stop.signal), queue.take(stop.signal)];
  const staying = queue.take(other.signal);

  stop.abort();
  queue.add("a");

  expect(await Promise.all([...leaving, staying])).toEqual([undefined, undefined, "a"]);
});

test("once its signal has aborted, a worker gets no key although one is ready", async () => {
  const { queue, stop } = setup();
  const waiting = queue.take(stop.signal);

  stop.abort();
  queue.add("a");

  expect(await waiting).toBeUndefined();
  expect(await queue.take(stop.signal)).toBeUndefined();
  expect(queue.depth).toBe(1);
});

test("metrics carry upstream's names and tell depth, ages and durations", async () => {
  const { scheduler, metrics, queue, stop } = setup();
  for (const key of ["a", "b", "b"]) queue.add(key);
  queue.addAfter("c", 60_000);
  await scheduler.runFor(2_000);
  await queue.take(stop.signal);
  await scheduler.runFor(3_000);

  const text = await metrics.render();

  for (const line of [
    'workqueue_depth{name="q"} 1',
    'workqueue_adds_total{name="q"} 2',
    'workqueue_retries_total{name="q"} 1',
    'workqueue_queue_duration_seconds_sum{name="q"} 2',
    'workqueue_unfinished_work_seconds{name="q"} 3',
    'workqueue_longest_running_processor_seconds{name="q"} 3',
    'mooring_workqueue_oldest_waiting_seconds{name="q"} 5',
    'mooring_workqueue_delayed{name="q"} 1',
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  queue.done("a");
  expect(await metrics.render()).toContain('workqueue_work_duration_seconds_sum{name="q"} 3\n');
});
