import type { AttachedVolume } from "kubernetes-types/core/v1.js";
import { nodes, trimNode } from "../kube/api/node.ts";
import { isKubeError } from "../kube/errors.ts";
import { runWorkers, type Outcome } from "../kube/workqueue/controller.ts";
import type { NodeName } from "../volumes/names.ts";
import { markUnsettled, type Context } from "./context.ts";
import { DOUBT_MS } from "./doubts.ts";
import { detailOf } from "./errors.ts";
import { readNode } from "./live-node.ts";
import { nodeGone, nodeSeen } from "./nodes.ts";
import { intendedList, statusDiffers, statusPatch } from "./node-status.ts";
import type { NodeState } from "./world.ts";

/**
 * Writes `volumesAttached` until the server agrees: one request in flight a node, whatever changed meanwhile goes into
 * the next, nodes in parallel. What counts as written is what the answer says.
 *
 * 64 nodes at once: the client limits itself to what the server bears, this only bounds what waits for it.
 */
const WORKERS = 64;

export async function runStatusWriter(context: Context, signal: AbortSignal): Promise<void> {
  const { nodeStatus: queue, clock, log, metrics } = context;
  const reconcile = (name: NodeName, stopping: AbortSignal) => writeStatus(context, name, stopping);
  await runWorkers({ queue, clock, log, metrics }, { workers: WORKERS, reconcile }, signal);
}

async function writeStatus(context: Context, name: NodeName, signal: AbortSignal): Promise<Outcome> {
  const { client, world, mayAct, measure } = context;
  const state = world.nodes.get(name);
  if (state === undefined || !statusDiffers(state)) return { kind: "done" };
  // A lease in doubt may be ours for certain in a moment; if it is not, the term ends and this queue with it.
  if (!mayAct()) return { kind: "retry" };
  const list = intendedList(state);
  const version = state.node?.metadata.resourceVersion;
  try {
    // Kept on failure: what an unanswered write named may appear on the server at any time.
    state.unconfirmed = new Set([...(state.unconfirmed ?? []), ...list.map(({ name }) => name)]);
    const written = await client.patch(nodes, { name }, statusPatch(list, version), {
      subresource: "status",
      signal,
      // A kubelet waits for it, and in a burst thousands of VolumeAttachments are about to be created.
      urgent: true,
    });
    state.unconfirmed = undefined;
    state.writeError = undefined;
    measure.statusWritten();
    nodeSeen(context, trimNode(written));
  } catch (error) {
    if (isKubeError(error, "Conflict")) return lookAgain(context, name, signal);
    if (signal.aborted || (isKubeError(error) && error.outcomeUnknown))
      mayComeLate(context, state, list, version);
    if (!isKubeError(error, "NotFound")) {
      tellWaiting(context, state, error);
      throw error;
    }
    state.unconfirmed = undefined;
    nodeGone(context, name);
  }
  markUnsettled(context, state);
  // Something changed while the request was under way, or somebody else writes this list too.
  if (statusDiffers(state)) context.nodeStatus.add(name);
  return { kind: "done" };
}

/** Whoever waits for the list should say why it is not written. */
function tellWaiting(context: Context, state: NodeState, error: unknown): void {
  const before = state.writeError;
  state.writeError = detailOf(error);
  if (state.writeError !== before) markUnsettled(context, state);
}

/** A kubelet wrote its node meanwhile, and its watch event is still on the way: the list is made again from what is there. */
async function lookAgain(context: Context, name: NodeName, signal: AbortSignal): Promise<Outcome> {
  await readNode(context, name, signal);
  context.nodeStatus.add(name);
  return { kind: "done" };
}

/**
 * The server may carry it out after all that follows, unless the node has another version by then. A later list repairs what
 * it leaves out, but what it names must not be detached meanwhile: the node would be told to mount it. Bound: what lists
 * named within `DOUBT_MS`.
 */
function mayComeLate(
  { clock }: Context,
  state: NodeState,
  list: readonly AttachedVolume[],
  version: string | undefined,
): void {
  const nowMs = clock.now();
  const late = new Map([...state.late].filter(([, { untilMs }]) => untilMs > nowMs));
  for (const { name } of list) late.set(name, { version, untilMs: nowMs + DOUBT_MS });
  state.late = late;
}
