import type { Node } from "../kube/api/node.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { compareVersions } from "../kube/object.ts";
import { canTellUse, isManaged, usesVolume } from "./node-view.ts";
import { including, NONE, type NodeState, type Placement } from "./world.ts";

/**
 * A Node object that was created anew, while its machine may never have stopped: `kubectl delete node` of a node that is
 * alive, whose kubelet registers it again within seconds. An empty `volumesInUse` of such an object says nothing of what the
 * one before it had in use, nor of what was attached before it was created. Both are presumed in use until the node itself
 * has spoken: it lists volumes in use, and then that list decides; or its boot ID is another than the old Node's, and
 * a new life of the machine has nothing mounted; or it has been ready for `SILENCE_MS`.
 *
 * Whoever starts to lead has not seen the old Node, so every Node object is such a one when it is first seen. What was
 * attached to it is told from what was attached before it by the server's own times of creation. Pure.
 */

/**
 * How long a node has to be seen ready, at a stretch, until an empty list counts as its word. A kubelet puts `volumesInUse`
 * into the very request that registers its Node, and into its status, every 10 s as it changes, as soon as it has found its
 * mounts again. After its death the Node stays ready for 50 s at most (`--node-monitor-grace-period`), so that one which
 * is ready for two minutes has a kubelet that had ten times the occasion to say what it uses. An agent of ours says with its
 * readiness whether it has found them: on a disk that fails it may take for ever, and while it looks no time counts.
 */
export const SILENCE_MS = 120_000;

/** What was known before, and what a word of the node has changed besides what it says. */
export interface Observed {
  readonly before: Node | undefined;
  /** It is another object than the one known before, or the first. */
  readonly isNew: boolean;
  /** What was presumed because it had not spoken is no longer. */
  readonly hasSpoken: boolean;
}

/** Takes in what a node says unless something newer is known; undefined if nothing was learned. */
export function observeNode(state: NodeState, node: Node, nowMs: number): Observed | undefined {
  const before = state.exists ? state.node : undefined;
  if (before !== undefined && isOlder(node, before)) return undefined;
  const isNew = state.node?.metadata.uid !== node.metadata.uid;
  if (isNew) beginLife(state);
  const wasSilent = isSilent(state);
  state.readySinceMs = canTellUse(node) ? (state.readySinceMs ?? nowMs) : undefined;
  if (!state.spoken && hasSpoken(state, node, nowMs)) endSilence(state);
  state.node = node;
  state.exists = true;
  state.managed ||= isManaged(node);
  return { before, isNew, hasSpoken: wasSilent && state.spoken };
}

function isOlder(node: Node, than: Node): boolean {
  if (node.metadata.uid !== than.metadata.uid) return false;
  const order = compareVersions(node.metadata.resourceVersion ?? "", than.metadata.resourceVersion ?? "");
  return order !== undefined && order < 0;
}

/** Whatever was presumed in use, or said to be, on the Node object before this one. One that never spoke passes on what it got. */
function beginLife(state: NodeState): void {
  const { node: known } = state;
  if (known !== undefined) {
    if (state.spoken || state.former === undefined) state.former = known;
    for (const placement of state.assumed) state.inherited = including(state.inherited, placement);
  }
  state.spoken = false;
  state.readySinceMs = undefined;
}

function hasSpoken(state: NodeState, node: Node, nowMs: number): boolean {
  const inUse = node.status?.volumesInUse ?? [];
  return inUse.length > 0 || isOtherBoot(state.former, node) || isOver(state, nowMs);
}

/** Only where both are known. */
function isOtherBoot(former: Node | undefined, node: Node): boolean {
  const [was, is] = [former?.status?.nodeInfo?.bootID, node.status?.nodeInfo?.bootID];
  return Boolean(was) && Boolean(is) && was !== is;
}

function isOver({ readySinceMs }: NodeState, nowMs: number): boolean {
  return readySinceMs !== undefined && nowMs >= readySinceMs + SILENCE_MS;
}

/** From now on what the node lists is what it uses; `endPresumptions` finds what was presumed until now. */
export function endSilence(state: NodeState): void {
  state.spoken = true;
  state.former = undefined;
  state.inherited = NONE;
}

/** A volume that was attached before the Node object was created is presumed in use there until that one has spoken. */
export function inherit(placement: Placement): void {
  const { node } = placement;
  if (node.spoken) return;
  node.assumed = including(node.assumed, placement);
  node.inherited = including(node.inherited, placement);
}

/**
 * By how much one object may seem younger than another that was created before it: servers tell times in whole seconds, and
 * those of one control plane have a clock each, which NTP keeps within a second. A new node is ready, and gets its first volume,
 * later than that.
 */
const SKEW_MS = 5_000;

/** By the servers' times; what they do not tell is older. */
export function isOlderThanNode({ metadata }: VolumeAttachment, { node }: NodeState): boolean {
  const createdMs = Date.parse(metadata.creationTimestamp ?? "");
  return !(createdMs > Date.parse(node?.metadata.creationTimestamp ?? "") + SKEW_MS);
}

/** Whether something is presumed in use on a Node object that has not spoken. */
export function isSilent({ spoken, former, inherited }: NodeState): boolean {
  return !spoken && (former !== undefined || inherited.size > 0);
}

/** Whether it counts as used only because its Node object has not spoken. */
export function isInherited(placement: Placement): boolean {
  const { node, volume } = placement;
  if (usesVolume(node.node, volume.name)) return false;
  return node.inherited.has(placement) || usesVolume(node.former, volume.name);
}

/** When an empty list will count as the node's word, in the clock's `now()`; undefined while it is not ready, or has spoken. */
export function silentUntilMs(state: NodeState): number | undefined {
  const { exists, readySinceMs } = state;
  return exists && isSilent(state) && readySinceMs !== undefined ? readySinceMs + SILENCE_MS : undefined;
}
