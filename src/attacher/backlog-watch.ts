import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { WorkQueue } from "../kube/workqueue/work-queue.ts";
import type { Backlog } from "./backlog.ts";
import type { Operation } from "./plan.ts";

const LOOK_EVERY_MS = 10_000;
const FIRST_LINE_MS = 60_000;

/**
 * Says in the log when something has waited for a minute, then whenever it has waited twice as long as the last time:
 * a pod's volume that cannot be attached for a day is eleven lines, not 1,440.
 */
export async function watchBacklog(
  deps: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly backlog: Backlog;
    readonly queues: Readonly<Record<Operation, WorkQueue<string>>>;
  },
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, backlog, queues } = deps;
  const nextMs: Record<Operation, number> = { attach: FIRST_LINE_MS, detach: FIRST_LINE_MS };

  function look(operation: Operation): void {
    const oldest = backlog.oldest(operation);
    const ageMs = oldest === undefined ? 0 : clock.now() - oldest.sinceMs;
    if (ageMs < FIRST_LINE_MS) nextMs[operation] = FIRST_LINE_MS;
    if (oldest === undefined || ageMs < nextMs[operation]) return;
    nextMs[operation] = 2 * ageMs;
    const etaMs = backlog.etaMs(operation, clock.now());
    log.warn("attachments wait", {
      operation,
      waiting: backlog.size(operation),
      ready: queues[operation].depth,
      delayed: queues[operation].delayed,
      oldest: oldest.key,
      oldestSeconds: Math.round(ageMs / 1000),
      etaSeconds: etaMs === Infinity ? undefined : Math.round(etaMs / 1000),
    });
  }

  while (!signal.aborted) {
    try {
      await clock.sleep(LOOK_EVERY_MS, signal);
    } catch {
      return;
    }
    look("attach");
    look("detach");
  }
}
