import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Metrics } from "../../base/metrics.ts";
import { runWorkers, type Outcome } from "../../kube/workqueue/controller.ts";
import { createWorkQueue } from "../../kube/workqueue/work-queue.ts";
import type { Marks } from "./engine-controller.ts";

/** From 5 ms, because a conflict is over by then, to 30 s, after which a full disk is looked at again. */
const BACKOFF = { initialMs: 5, maxMs: 30_000 };

/**
 * A work queue that knows when it is through. Keys are object names, so it is never larger than the store.
 * A key that failed and waits for its backoff, or that is planned for later, does not count as open.
 */
export interface MarkedQueue extends Marks {
  readonly isIdle: boolean;
  /** Resolves when a look at a key has ended, or all of them have stopped. */
  next(): Promise<void>;
  run(
    options: { readonly workers: number; readonly reconcile: (key: string) => Promise<Outcome> },
    signal: AbortSignal,
  ): Promise<void>;
}

export function createMarkedQueue(
  deps: { readonly clock: Clock; readonly log: Logger; readonly metrics: Metrics },
  name: string,
): MarkedQueue {
  const queue = createWorkQueue<string>(deps, { name, backoff: BACKOFF });
  /** Open keys with the mark that opened them: a later one means that the look under way does not count. */
  const open = new Map<string, number>();
  let lastMark = 0;
  let waiting: (() => void)[] = [];

  async function look(key: string, reconcile: (key: string) => Promise<Outcome>): Promise<Outcome> {
    const mark = open.get(key) ?? ++lastMark;
    open.set(key, mark);
    try {
      return await reconcile(key);
    } finally {
      if (open.get(key) === mark) open.delete(key);
      tellAll();
    }
  }

  function tellAll(): void {
    const told = waiting;
    waiting = [];
    for (const tell of told) tell();
  }

  return {
    get isIdle() {
      return open.size === 0;
    },
    next: () => new Promise((resolve) => waiting.push(resolve)),
    mark(key) {
      open.set(key, ++lastMark);
      queue.add(key);
    },
    markAfter: (key, ms) => queue.addAfter(key, ms),
    async run({ workers, reconcile }, signal) {
      await runWorkers({ ...deps, queue }, { workers, reconcile: (key) => look(key, reconcile) }, signal);
      tellAll();
    },
  };
}
