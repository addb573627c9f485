import type { Node } from "../kube/api/node.ts";
import type { Delta } from "../kube/informer/store.ts";
import type { NodeName, VolumeName } from "../volumes/names.ts";
import { isInTreeName } from "../volumes/translation/in-tree-names.ts";
import { markAttached, markDetached } from "./actual.ts";
import { attachmentOf } from "./attachments.ts";
import { mark, markUnsettled, markVolume, type Context } from "./context.ts";
import { inherit, isOlderThanNode, observeNode } from "./new-node.ts";
import {
  attachmentNameOf,
  endLateLists,
  endPresumptions,
  canTellUse,
  isHealthy,
  isOutOfService,
  mayBeListed,
} from "./node-view.ts";
import { statusDiffers } from "./node-status.ts";
import { awaitWord, markSilenceEnded, markUnread } from "./silent-nodes.ts";
import { including, type NodeState, type Placement } from "./world.ts";

/** What a word about a node changes: only the placements it touches are looked at again. */
export function onNode(context: Context, delta: Delta<Node>): void {
  const { kind, object } = delta;
  if (kind === "deleted") nodeDeleted(context, object, delta);
  else nodeSeen(context, object);
}

/** From the watch, or from an answer to one of our own requests; the older of the two changes nothing. */
export function nodeSeen(context: Context, node: Node): void {
  const state = context.world.node(node.metadata.name as NodeName);
  const wasManaged = state.managed;
  const observed = observeNode(state, node, context.clock.now());
  if (observed === undefined) return;
  const { before, isNew, hasSpoken } = observed;
  if (isNew) inheritOlder(context, state);
  awaitWord(context, state);
  if (hasSpoken) markSilenceEnded(context, state);
  for (const placement of endPresumptions(state)) mark(context, placement);
  for (const placement of endLateLists(state)) mark(context, placement);
  const changed = [...changedUse(before, node), ...noLongerListed(before, node)];
  for (const volume of changed) {
    const placement = state.placements.get(volume);
    if (placement) mark(context, placement);
  }
  if (changed.length > 0 && context.foreign.hasUnread()) markUnread(context, state);
  if (changed.some(isInTreeName)) markUnsettled(context, state);
  if (state.managed !== wasManaged || standing(before) !== standing(node)) markUnsettled(context, state);
  if (!state.managed) followUnmanaged(context, state);
  else writeAgain(context, state);
}

/** Of what is attached, what was attached before the Node object was created. */
function inheritOlder(context: Context, state: NodeState): void {
  if (state.spoken) return;
  for (const placement of state.placements.values())
    if (placement.hold && mayBeOlder(context, placement)) inherit(placement);
}

/** Of what has no VolumeAttachment by its nature nobody knows since when it is attached. */
function mayBeOlder(context: Context, placement: Placement): boolean {
  const { node, volume } = placement;
  const attachment = attachmentOf(context, placement);
  if (attachment) return isOlderThanNode(attachment, node);
  return attachmentNameOf(volume.name, node.name) === undefined;
}

/** The watch says so; unless a list found it missing, it has told all that the node said before. */
function nodeDeleted(context: Context, { metadata }: Node, { tombstone }: { tombstone: boolean }): void {
  const state = context.world.nodes.get(metadata.name as NodeName);
  if (state === undefined) return;
  if (tombstone) presumeListed(state);
  else {
    // The server has told of its successor already; so will the watch.
    if (state.node?.metadata.uid !== metadata.uid) return;
    for (const placement of endPresumptions(state)) mark(context, placement);
  }
  leave(context, state);
}

/** The server does not know it; what it said at last may not have been heard. */
export function nodeGone(context: Context, name: NodeName): void {
  const state = context.world.nodes.get(name);
  if (!state?.exists) return;
  presumeListed(state);
  leave(context, state);
}

/** What a node is told to be attached it may have mounted since it was heard of. */
function presumeListed(state: NodeState): void {
  for (const placement of state.placements.values())
    if (placement.hold && mayBeListed(placement)) state.assumed = including(state.assumed, placement);
}

/** What it last said stays known: a volume it used may still be in use, though nobody can be asked. */
function leave(context: Context, state: NodeState): void {
  state.exists = false;
  state.readySinceMs = undefined;
  markUnsettled(context, state);
  context.world.tidyNode(state);
}

/**
 * The list may have to be written, though nothing of ours has changed: somebody else wrote it, or a write of ours failed. What
 * failed comes by itself after its back-off, and neither a heartbeat nor the sweep brings it sooner.
 */
export function writeAgain({ nodeStatus }: Context, state: NodeState): void {
  if (statusDiffers(state) && nodeStatus.failures(state.name) === 0) nodeStatus.add(state.name);
}

/** Whether volumes may be forced off it, as far as the node decides that, and whether it knows which it uses. */
function standing(node: Node | undefined): string {
  return node ? `${isHealthy(node)} ${canTellUse(node)} ${isOutOfService(node)}` : "gone";
}

function changedUse(before: Node | undefined, after: Node): VolumeName[] {
  const was = before?.status?.volumesInUse ?? [];
  const is = after.status?.volumesInUse ?? [];
  if (was.length === is.length && was.every((name, index) => name === is[index])) return [];
  const [old, now] = [new Set(was), new Set(is)];
  return [...was.filter((name) => !now.has(name)), ...is.filter((name) => !old.has(name))] as VolumeName[];
}

/** Our own writes take volumes off the list too; anything else that did makes us doubt what we found at the start. */
function noLongerListed(before: Node | undefined, after: Node): VolumeName[] {
  const was = before?.status?.volumesAttached ?? [];
  const is = after.status?.volumesAttached ?? [];
  if (was.length === 0 || was.every(({ name }, index) => name === is[index]?.name)) return [];
  const now = new Set(is.map(({ name }) => name));
  return was.map(({ name }) => name as VolumeName).filter((name) => !now.has(name));
}

/**
 * A kubelet that attaches for itself: what it lists is held there, which nobody but it may change, and which keeps
 * other nodes away from its single-node volumes.
 */
function followUnmanaged(context: Context, state: NodeState): void {
  const listed = new Map(
    (state.node?.status?.volumesAttached ?? []).map(({ name, devicePath }) => [
      name as VolumeName,
      devicePath,
    ]),
  );
  for (const [name, devicePath] of listed) {
    const placement = context.world.placement(name, state.name);
    if (placement.hold?.confirmed) continue;
    markAttached(context, placement, {
      spec: undefined,
      devicePath,
      listed: true,
      proven: false,
      nowMs: context.clock.now(),
    });
    endPresumptions(state);
  }
  for (const placement of [...state.placements.values()]) {
    if (!placement.hold || listed.has(placement.volume.name) || attachmentOf(context, placement)) continue;
    markDetached(context, placement);
    markVolume(context, placement);
  }
}
