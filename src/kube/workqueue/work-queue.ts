import type { Clock, Timer } from "../../base/clock.ts";
import type { Metrics } from "../../base/metrics.ts";
import { WorkQueueCore, type CoreOptions } from "./core.ts";
import { IdleWorkers } from "./idle-workers.ts";
import { createWorkQueueMetrics } from "./metrics.ts";

/** The core's contract (`core.ts`) with a clock: workers wait for keys, delayed keys come by themselves. */
export interface WorkQueue<K extends string> {
  readonly name: string;
  /** Keys ready to be handed out. */
  readonly depth: number;
  /** Keys waiting for a time. */
  readonly delayed: number;
  add(key: K): void;
  addAfter(key: K, ms: number): void;
  /** In the clock's `now()`. */
  addAt(key: K, atMs: number): void;
  /** Counts a failure and returns after how many milliseconds the key comes back. */
  retry(key: K): number;
  forget(key: K): void;
  failures(key: K): number;
  /** What the key failed for may have changed: counts from zero and, if it waited for its backoff, comes now. */
  resetBackoff(key: K): void;
  /** The next key, to be given back with `done`; undefined once the signal has aborted. Never rejects. */
  take(signal: AbortSignal): Promise<K | undefined>;
  done(key: K): void;
}

export interface WorkQueueOptions<K> extends CoreOptions<K> {
  /** The label `name` of the metrics: upstream's name where upstream has this queue. */
  readonly name: string;
}

export function createWorkQueue<K extends string>(
  { clock, metrics }: { clock: Clock; metrics: Metrics },
  options: WorkQueueOptions<K>,
): WorkQueue<K> {
  const core = new WorkQueueCore<K>(options);
  const measured = createWorkQueueMetrics(metrics, { name: options.name, clock, core });
  const idle = new IdleWorkers<K>(arm);
  let alarm: { atMs: number; timer: Timer } | undefined;

  function takeNow(): K | undefined {
    const taken = core.take(clock.now());
    if (taken !== undefined) measured.taken(taken.waitedMs);
    return taken?.key;
  }

  function handOut(): void {
    while (idle.size > 0) {
      const key = takeNow();
      if (key === undefined) return;
      idle.give(key);
    }
  }

  /**
   * One timer for all delayed keys, set to the earliest. Without a worker there is none: it would keep a process that
   * has stopped alive for as long as a backoff lasts.
   */
  function arm(): void {
    const atMs = idle.size + core.running === 0 ? undefined : core.nextDueMs;
    if (atMs === alarm?.atMs) return;
    alarm?.timer.cancel();
    alarm = undefined;
    if (atMs === undefined) return;
    alarm = { atMs, timer: clock.after(atMs - clock.now(), onAlarm) };
  }

  function onAlarm(): void {
    // Rounding may let a timer fire a hair before its time; asking again would then never end.
    const dueMs = Math.max(clock.now(), alarm?.atMs ?? 0);
    alarm = undefined;
    measured.added(core.promote(dueMs));
    arm();
    handOut();
  }

  function take(signal: AbortSignal): Promise<K | undefined> {
    // While nobody was here there was no alarm.
    if (alarm === undefined) measured.added(core.promote(clock.now()));
    const key = signal.aborted ? undefined : takeNow();
    const taken = signal.aborted || key !== undefined ? Promise.resolve(key) : idle.wait(signal);
    arm();
    return taken;
  }

  function addAt(key: K, atMs: number): void {
    measured.retried();
    core.addAt(key, atMs);
    arm();
  }

  return {
    name: options.name,
    get depth() {
      return core.depth;
    },
    get delayed() {
      return core.delayed;
    },
    add(key) {
      if (core.add(key, clock.now())) measured.added(1);
      handOut();
    },
    addAt,
    addAfter: (key, ms) => addAt(key, clock.now() + ms),
    retry(key) {
      measured.retried();
      const delayMs = core.retry(key, clock.now());
      arm();
      return delayMs;
    },
    forget(key) {
      core.forget(key);
      arm();
    },
    failures: (key) => core.failures(key),
    resetBackoff(key) {
      if (core.resetBackoff(key, clock.now())) measured.added(1);
      arm();
      handOut();
    },
    take,
    done(key) {
      measured.worked(core.done(key, clock.now()));
      handOut();
    },
  };
}
