import type { ObjectKey } from "../kube/object.ts";
import { runWorkers, type Outcome } from "../kube/workqueue/controller.ts";
import { createWorkQueue } from "../kube/workqueue/work-queue.ts";
import type { StorageDeps } from "./deps.ts";
import { staleOutcome } from "./writes.ts";

export const DONE: Outcome = { kind: "done" };

/** What nobody expected; what a driver or a version conflict does has its own time. */
const BACKOFF = { initialMs: 1_000, maxMs: 60_000 };

/** Keys of one kind, each looked at by one worker at a time. */
export interface Keyed {
  add(key: ObjectKey): void;
  run(signal: AbortSignal): Promise<void>;
}

export interface KeyedOptions {
  /** The label of the queue's metrics. */
  readonly name: string;
  readonly workers: number;
  readonly reconcile: (key: ObjectKey, signal: AbortSignal) => Promise<Outcome>;
}

export function createKeyed(
  { clock, log, metrics }: Pick<StorageDeps, "clock" | "log" | "metrics">,
  { name, workers, reconcile }: KeyedOptions,
): Keyed {
  const queue = createWorkQueue<ObjectKey>({ clock, metrics }, { name, backoff: BACKOFF });

  /** A version that has moved on is no failure: the key is looked at again. */
  async function look(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    try {
      return await reconcile(key, signal);
    } catch (error) {
      const stale = signal.aborted ? undefined : staleOutcome(error);
      if (stale) return stale;
      throw error;
    }
  }

  return {
    add: (key) => queue.add(key),
    run: (signal) => runWorkers({ queue, clock, log, metrics }, { workers, reconcile: look }, signal),
  };
}
