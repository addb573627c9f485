import { nodes, trimNode, type Node } from "../kube/api/node.ts";
import { isKubeError } from "../kube/errors.ts";
import type { NodeName } from "../volumes/names.ts";
import type { Context } from "./context.ts";
import { nodeGone, nodeSeen } from "./nodes.ts";

/**
 * A node as the server knows it now; undefined if it does not. One write takes many volumes off a node's list at once,
 * and then each wants to know the same: whoever asks before the request is sent shares its answer. Never later, for
 * what a detach has to learn is what the node says after its own volume left the list.
 *
 * A read is aborted by the signal of whoever asked first. Only the end of the term aborts a detach, and that ends all.
 */
export function readNode(context: Context, name: NodeName, signal: AbortSignal): Promise<Node | undefined> {
  const { liveReads } = context;
  const unsent = liveReads.get(name);
  if (unsent) return unsent;
  const read = readSoon(context, name, signal);
  liveReads.set(name, read);
  return read;
}

async function readSoon(context: Context, name: NodeName, signal: AbortSignal): Promise<Node | undefined> {
  const { client, clock, liveReads } = context;
  try {
    // One turn: the placements that a write set free are looked at in one go.
    await clock.sleep(0, signal);
  } finally {
    liveReads.delete(name);
  }
  try {
    const live = trimNode(await client.get(nodes, { name }, { signal }));
    nodeSeen(context, live);
    return live;
  } catch (error) {
    if (!isKubeError(error, "NotFound")) throw error;
    nodeGone(context, name);
    return undefined;
  }
}
