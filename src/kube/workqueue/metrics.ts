import type { Clock } from "../../base/clock.ts";
import type { Gauge, Metrics } from "../../base/metrics.ts";

/** Upstream's buckets: 10 ns to 10 s, each ten times the one before. */
const DURATION_BUCKETS_S = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10];

export interface WorkQueueMetrics {
  added(count: number): void;
  /** Upstream counts every delayed add here, a planned one as well as one after a failure. */
  retried(): void;
  taken(waitedMs: number): void;
  worked(tookMs: number): void;
}

/** What a queue can be asked at a scrape. */
interface Measured {
  readonly depth: number;
  readonly delayed: number;
  readonly oldestAddedMs: number | undefined;
  runningSinceMs(): Iterable<number>;
}

/** The metrics of client-go's queues under their names, and two of ours under `mooring_`. */
export function createWorkQueueMetrics(
  metrics: Metrics,
  { name, clock, core }: { name: string; clock: Clock; core: Measured },
): WorkQueueMetrics {
  const label = { name };
  const labels = ["name"] as const;
  registerGauges(metrics, { name, clock, core });
  const adds = metrics.counter({
    name: "workqueue_adds_total",
    help: "Keys added, duplicates left out.",
    labels,
  });
  const retries = metrics.counter({
    name: "workqueue_retries_total",
    help: "Keys added with a delay.",
    labels,
  });
  const waited = metrics.histogram({
    name: "workqueue_queue_duration_seconds",
    help: "How long a key was ready before a worker took it.",
    labels,
    buckets: DURATION_BUCKETS_S,
  });
  const worked = metrics.histogram({
    name: "workqueue_work_duration_seconds",
    help: "How long a worker had a key.",
    labels,
    buckets: DURATION_BUCKETS_S,
  });
  return {
    added: (count) => {
      if (count > 0) adds.inc(label, count);
    },
    retried: () => retries.inc(label),
    taken: (ms) => waited.observe(ms / 1000, label),
    worked: (ms) => worked.observe(ms / 1000, label),
  };
}

function registerGauges(
  metrics: Metrics,
  { name, clock, core }: { name: string; clock: Clock; core: Measured },
): void {
  const register = (metric: string, help: string, read: (nowMs: number) => number) =>
    metrics.gauge({
      name: metric,
      help,
      labels: ["name"],
      collect: (gauge: Gauge<"name">) => gauge.set(read(clock.now()), { name }),
    });
  const runningSeconds = (nowMs: number) =>
    Array.from(core.runningSinceMs(), (sinceMs) => (nowMs - sinceMs) / 1000);

  register("workqueue_depth", "Keys ready and not yet taken.", () => core.depth);
  register(
    "workqueue_unfinished_work_seconds",
    "How long the keys in work have been there, in all.",
    (nowMs) => runningSeconds(nowMs).reduce((sum, seconds) => sum + seconds, 0),
  );
  register("workqueue_longest_running_processor_seconds", "How long the longest of them has.", (nowMs) =>
    Math.max(0, ...runningSeconds(nowMs)),
  );
  register(
    "mooring_workqueue_delayed",
    "Keys waiting for a time: in backoff, or planned for later.",
    () => core.delayed,
  );
  register(
    "mooring_workqueue_oldest_waiting_seconds",
    "How long the oldest ready key has waited.",
    (nowMs) => (core.oldestAddedMs === undefined ? 0 : (nowMs - core.oldestAddedMs) / 1000),
  );
}
