import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Counter, Metrics } from "../../base/metrics.ts";
import { unreachable } from "../../base/assert.ts";
import type { WorkQueue } from "./work-queue.ts";

/** What one look at a key came to. */
export type Outcome =
  | { readonly kind: "done" }
  /** Failed; comes back after its backoff. */
  | { readonly kind: "retry"; readonly error?: unknown }
  /** Fine so far; comes back after `ms`, or sooner if something happens to it. */
  | { readonly kind: "after"; readonly ms: number }
  /** Trying again cannot help; only a new event brings the key back. */
  | { readonly kind: "terminal"; readonly error: unknown };

export interface ControllerDeps<K extends string> {
  readonly queue: WorkQueue<K>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface ControllerOptions<K extends string> {
  readonly workers: number;
  /** The signal aborts when the workers are to stop; what has begun may be brought to an end. */
  readonly reconcile: (key: K, signal: AbortSignal) => Promise<Outcome>;
}

/**
 * Works on the queue's keys, `workers` at a time, until the signal aborts; resolves when every reconcile
 * that had begun has ended. A reconcile that throws counts as `retry`: one bad key never stops the rest.
 */
export async function runWorkers<K extends string>(
  deps: ControllerDeps<K>,
  { workers, reconcile }: ControllerOptions<K>,
  signal: AbortSignal,
): Promise<void> {
  const settle = createSettle(deps);
  const outcomes = reconcileCounter(deps.metrics);
  const work = async () => {
    for (;;) {
      const key = await deps.queue.take(signal);
      if (key === undefined) return;
      const startedMs = deps.clock.now();
      const result = signal.aborted ? undefined : await reconcileSafely(reconcile, key, signal);
      if (result === undefined || (signal.aborted && result.threw)) {
        // Stopped before it began or cut short by the stop: no failure of the key, which whoever works next must see.
        deps.queue.add(key);
      } else {
        outcomes.inc({ name: deps.queue.name, outcome: result.threw ? "threw" : result.outcome.kind });
        settle(key, result.outcome, deps.clock.now() - startedMs);
      }
      deps.queue.done(key);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
}

async function reconcileSafely<K>(
  reconcile: (key: K, signal: AbortSignal) => Promise<Outcome>,
  key: K,
  signal: AbortSignal,
): Promise<{ outcome: Outcome; threw: boolean }> {
  try {
    return { outcome: await reconcile(key, signal), threw: false };
  } catch (error) {
    return { outcome: { kind: "retry", error }, threw: true };
  }
}

function reconcileCounter(metrics: Metrics): Counter<"name" | "outcome"> {
  return metrics.counter({
    name: "mooring_reconciles_total",
    help: "Looks at a key, by how they ended; `threw` is a retry nobody expected.",
    labels: ["name", "outcome"],
  });
}

/**
 * A reconcile whose time has come and which asks for the same time again, because what ends its wait is a timer of that very
 * instant, is not repeated at once: it would keep that timer, and everything else, from ever running.
 */
const AGAIN_MS_MIN = 1;

/** Tells the queue what comes next for a key, and the log when that is news. */
function createSettle<K extends string>({ queue, log }: ControllerDeps<K>) {
  /** What each failing key was last logged with. As many as keys fail: one that does well, or is gone, ends as `done`. */
  const failing = new Map<K, string>();

  function isNews(key: K, kind: Outcome["kind"], error: unknown): boolean {
    const text = `${kind} ${error instanceof Error ? error.message : String(error)}`;
    if (failing.get(key) === text) return false;
    failing.set(key, text);
    return true;
  }

  function logRecovery(key: K, tookMs: number): void {
    if (failing.delete(key)) log.info("reconcile recovered", { queue: queue.name, key, tookMs });
  }

  return (key: K, outcome: Outcome, tookMs: number): void => {
    switch (outcome.kind) {
      case "done":
        queue.forget(key);
        logRecovery(key, tookMs);
        return;
      case "after":
        queue.forget(key);
        queue.addAfter(key, Math.max(outcome.ms, AGAIN_MS_MIN));
        logRecovery(key, tookMs);
        return;
      case "retry": {
        const retryInMs = queue.retry(key);
        const { error } = outcome;
        // Without an error the reconcile has said what it waits for elsewhere.
        if (error !== undefined && isNews(key, "retry", error)) {
          log.warn("reconcile failed", { queue: queue.name, key, error, retryInMs, tookMs });
        }
        return;
      }
      case "terminal": {
        queue.forget(key);
        const { error } = outcome;
        if (isNews(key, "terminal", error)) {
          log.error("reconcile gave up", { queue: queue.name, key, error, tookMs });
        }
        return;
      }
      default:
        unreachable(outcome);
    }
  };
}
