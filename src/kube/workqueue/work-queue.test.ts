import { expect, test } from "vitest";
import { noMetrics } from "../../base/metrics.ts";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
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

test("100,000 delayed keys cost the clock one timer", () => {
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
    { name: "q", backoff: { initialMs: 1, maxMs: 1 } },
  );

  for (let index = 0; index < 100_000; index++) queue.addAt(String(index), 2_000_000 - index);

  expect(timers).toBe(1);
  expect(queue.delayed).toBe(100_000);
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
