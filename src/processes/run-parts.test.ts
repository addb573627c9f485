import { expect, test } from "vitest";
import { createPromMetrics } from "../base/prom-metrics.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { runWithParts } from "./run-parts.ts";
import { aborted } from "./shutdown.ts";
import { createTermMetrics } from "./term-metrics.ts";

test("parts outlive the work: they are told to end only after it has", async () => {
  const story: string[] = [];
  const stop = new AbortController();
  const part = {
    async run(signal: AbortSignal) {
      await aborted(signal);
      story.push("part ended");
    },
  };
  const running = runWithParts(
    [part],
    async (signal) => {
      await aborted(signal);
      story.push("work ended");
    },
    stop.signal,
  );

  stop.abort(new Error("SIGTERM"));
  await running;

  expect(story).toEqual(["work ended", "part ended"]);
});

test("a part that fails ends the work and the others, and its error is thrown", async () => {
  const story: string[] = [];
  const failing = { run: () => Promise.reject(new Error("cache broken")) };
  const other = {
    async run(signal: AbortSignal) {
      await aborted(signal);
      story.push("other ended");
    },
  };

  const running = runWithParts([failing, other], aborted, new AbortController().signal);

  await expect(running).rejects.toThrow("cache broken");
  expect(story).toEqual(["other ended"]);
});

test("work that fails ends the parts, and its error is thrown", async () => {
  let ended = false;
  const part = { run: (signal: AbortSignal) => aborted(signal).then(() => void (ended = true)) };

  const running = runWithParts(
    [part],
    () => Promise.reject(new Error("broken")),
    new AbortController().signal,
  );

  await expect(running).rejects.toThrow("broken");
  expect(ended).toBe(true);
});

test("a heartbeat is heard while timers fire, missed when they do not, and heard again after", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const heartbeat = createHeartbeat(clock);
  const stop = new AbortController();
  const running = heartbeat.run(stop.signal);
  await scheduler.runFor(100_000);
  expect(heartbeat.check.problem()).toBeUndefined();

  stop.abort();
  await running;
  await scheduler.runFor(30_000);
  expect(heartbeat.check.problem()).toBeUndefined();
  await scheduler.runFor(1_000);
  expect(heartbeat.check.problem()).toMatch(/^no timer has fired for 3\d s$/);

  void heartbeat.run(new AbortController().signal);
  expect(heartbeat.check.problem()).toBeUndefined();
});

test("a gauge of a past term is no longer asked and keeps no value; counters go on", async () => {
  const metrics = createPromMetrics();
  const spec = { name: "volumes", help: "x", labels: ["state"] as const };
  const first = createTermMetrics(metrics);
  first.metrics.gauge({ ...spec, collect: (gauge) => gauge.set(7, { state: "old" }) });
  first.metrics.counter({ name: "forced", help: "x" }).inc();
  first.metrics.gauge({ name: "kept", help: "x" }).set(3);
  expect(await metrics.render()).toContain('volumes{state="old"} 7');

  first.end();
  const between = await metrics.render();
  const second = createTermMetrics(metrics);
  second.metrics.gauge({ ...spec, collect: (gauge) => gauge.set(1, { state: "new" }) });
  second.metrics.counter({ name: "forced", help: "x" }).inc();
  const after = await metrics.render();

  expect(between).not.toContain("volumes{");
  expect(after).not.toContain('state="old"');
  expect(after).toContain('volumes{state="new"} 1');
  expect(after).toMatch(/^forced 2$/m);
  expect(after).toMatch(/^kept 3$/m);
});
