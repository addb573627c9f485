import { runWorkers, type Outcome } from "../kube/workqueue/controller.ts";
import type { NodeName } from "../volumes/names.ts";
import { mark, markUnsettled, type Context } from "./context.ts";
import { wakeWaiting } from "./foreign-events.ts";
import { endSilence, inherit, silentUntilMs } from "./new-node.ts";
import { endPresumptions, isAttachmentOnly } from "./node-view.ts";
import type { NodeState, Placement } from "./world.ts";

/** Nodes whose Node object has not said yet which volumes it uses: when they will have had the time to (`new-node.ts`). */

/** A volume older than its Node object is presumed in use there. */
export function inheritIn(context: Context, placement: Placement): void {
  inherit(placement);
  awaitWord(context, placement.node);
}

export function awaitWord({ silentNodes }: Context, state: NodeState): void {
  const untilMs = silentUntilMs(state);
  if (untilMs !== undefined) silentNodes.addAt(state.name, untilMs);
}

export async function runSilentNodes(context: Context, signal: AbortSignal): Promise<void> {
  const { silentNodes: queue, clock, log, metrics } = context;
  const reconcile = (name: NodeName) => Promise.resolve(hear(context, name));
  await runWorkers({ queue, clock, log, metrics }, { workers: 1, reconcile }, signal);
}

/** Its time may have come. One that was not ready meanwhile begins anew when it is. */
function hear(context: Context, name: NodeName): Outcome {
  const state = context.world.nodes.get(name);
  const untilMs = state && silentUntilMs(state);
  if (state === undefined || untilMs === undefined) return { kind: "done" };
  const leftMs = untilMs - context.clock.now();
  if (leftMs > 0) return { kind: "after", ms: leftMs };
  endSilence(state);
  for (const placement of endPresumptions(state)) mark(context, placement);
  markSilenceEnded(context, state);
  return { kind: "done" };
}

/** What the Node object before this one had in use may have been waited for, here and on other nodes. */
export function markSilenceEnded(context: Context, state: NodeState): void {
  markUnsettled(context, state);
  if (context.foreign.hasUnread()) markUnread(context, state);
}

/** Known by their VolumeAttachments alone, so any name in `volumesInUse` may be theirs. */
export function markUnread(context: Context, { placements }: NodeState): void {
  wakeWaiting(context);
  for (const placement of placements.values())
    if (isAttachmentOnly(placement.volume.name)) mark(context, placement);
}
