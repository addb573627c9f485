import type { Node } from "../kube/api/node.ts";
import type { Delta } from "../kube/informer/store.ts";
import type { NodeName, VolumeName } from "../volumes/names.ts";
import { isInTreeName } from "../volumes/translation/in-tree-names.ts";
import { markAttached, markDetached } from "./actual.ts";
import { attachmentOf } from "./attachments.ts";
import { mark, markUnsettled, markVolume, type Context } from "./context.ts";
import { wakeWaiting } from "./foreign-events.ts";
import {
  endLateLists,
  endPresumptions,
  isAttachmentOnly,
  isHealthy,
  isOutOfService,
  observeNode,
} from "./node-view.ts";
import { statusDiffers } from "./node-status.ts";
import type { NodeState } from "./world.ts";

/** What a word about a node changes: only the placements it touches are looked at again. */
export function onNode(context: Context, { kind, object }: Delta<Node>): void {
  if (kind === "deleted") nodeGone(context, object.metadata.name as NodeName);
  else nodeSeen(context, object);
}

/** From the watch, or from an answer to one of our own requests; the older of the two changes nothing. */
export function nodeSeen(context: Context, node: Node): void {
  const state = context.world.node(node.metadata.name as NodeName);
  const wasManaged = state.managed;
  const observed = observeNode(state, node);
  if (observed === undefined) return;
  const { before } = observed;
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
  else if (statusDiffers(state)) context.nodeStatus.add(state.name);
}

/** What it last said stays known: a volume it used may still be in use, though nobody can be asked. */
export function nodeGone(context: Context, name: NodeName): void {
  const state = context.world.nodes.get(name);
  if (!state?.exists) return;
  state.exists = false;
  markUnsettled(context, state);
  context.world.tidyNode(state);
}

/** Whether volumes may be forced off it, as far as the node decides that. */
function standing(node: Node | undefined): string {
  return node ? `${isHealthy(node)} ${isOutOfService(node)}` : "gone";
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

/** Known by their VolumeAttachments alone, so any name in `volumesInUse` may be theirs. */
function markUnread(context: Context, { placements }: NodeState): void {
  wakeWaiting(context);
  for (const placement of placements.values())
    if (isAttachmentOnly(placement.volume.name)) mark(context, placement);
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
