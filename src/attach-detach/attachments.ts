import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Delta } from "../kube/informer/store.ts";
import { keyOf, type ObjectKey } from "../kube/object.ts";
import { csiVolumeName, type NodeName, type VolumeName } from "../volumes/names.ts";
import { translate } from "../volumes/translation/translate.ts";
import type { VolumeSpec } from "../volumes/spec.ts";
import { learnSpec, markDetached, markUncertain } from "./actual.ts";
import { mark, markVolume, operationKey, type Context } from "./context.ts";
import { isFor } from "./csi-plugin.ts";
import { attachmentNameOf, attachmentOnlyName, isAttachmentOnly } from "./node-view.ts";
import { driverOf } from "./policy.ts";
import { including, NO_PLACEMENTS, type Hold, type Placement } from "./world.ts";

/**
 * VolumeAttachments as evidence of what may be attached. One that nobody here made is not forgotten: whether it was
 * found at the start or appears later, whether its PersistentVolume is there or not, the volume counts as held by
 * its node until the VolumeAttachment is gone.
 */
export function onAttachment(context: Context, { kind, object }: Delta<VolumeAttachment>): void {
  context.watch.notify(object.metadata.name ?? "");
  const placement = placementOf(context, object);
  if (placement === undefined) return;
  placement.attachmentName = object.metadata.name;
  if (kind === "deleted") attachmentGone(context, placement);
  else attachmentSeen(context, placement, object);
  context.world.tidy(placement);
}

/** The cached VolumeAttachment of this volume on this node. */
export function attachmentOf({ watch }: Context, placement: Placement): VolumeAttachment | undefined {
  const { volume, node } = placement;
  placement.attachmentName ??= attachmentNameOf(volume.name, node.name);
  return placement.attachmentName === undefined ? undefined : watch.current(placement.attachmentName);
}

/** What it says about a placement; `mismatch` where it stands for something else. */
export function attachmentVerdict(
  context: Context,
  placement: Placement,
): "attached" | "not-attached" | "mismatch" | "unknown" {
  const attachment = attachmentOf(context, placement);
  if (attachment === undefined) return "unknown";
  const driver = driverOf(placement.volume.name, undefined);
  if (driver !== undefined && !isFor(attachment, { source: { driver }, node: placement.node.name }))
    return "mismatch";
  return attachment.status?.attached === true ? "attached" : "not-attached";
}

function attachmentSeen(context: Context, placement: Placement, attachment: VolumeAttachment): void {
  const { hold, busy, want } = placement;
  // Our own attach has made it, or is about to find it.
  if (busy) return;
  if (hold === undefined) {
    const { spec } = identify(context, attachment);
    markUncertain(context, placement, { spec, nowMs: context.clock.now() });
    markVolume(context, placement);
    return;
  }
  // Listed by its node and found by name at the start: now its spec is known, and with it its claim and access modes.
  if (hold.spec === undefined) learnSpec(context, placement, identify(context, attachment).spec);
  if (want && !hold.confirmed && attachment.status?.attached === true) {
    // The attacher got it done by itself after we gave up: no reason to wait for the back-off.
    context.operations.resetBackoff(operationKey(placement));
    mark(context, placement);
  } else if (!hold.confirmed || attachment.status?.attached !== true) {
    mark(context, placement);
  }
}

/**
 * An operation has ended with nothing attached, but a VolumeAttachment is there: somebody made it anew while we waited for the
 * end of the old one, when nobody here was listening.
 */
export function seenWhileBusy(context: Context, placement: Placement): void {
  const attachment = placement.hold ? undefined : attachmentOf(context, placement);
  if (attachment === undefined || attachmentVerdict(context, placement) === "mismatch") return;
  attachmentSeen(context, placement, attachment);
}

/** The attacher removes it only when the volume is off the node, so its absence is proof. */
function attachmentGone(context: Context, placement: Placement): void {
  const { hold, busy } = placement;
  context.operations.resetBackoff(operationKey(placement));
  const trusted = hold !== undefined && (!hold.confirmed || !context.options.disableReconcileSync);
  if (trusted && !busy) {
    letGo(context, placement, hold);
    context.nodeStatus.add(placement.node.name);
  }
  markVolume(context, placement);
}

/** Unless a create of ours may still bring it back: then its detach has to see that through. */
function letGo(context: Context, placement: Placement, { spec }: Hold): void {
  const inDoubt = context.doubts.remainingMs(placement.attachmentName ?? "") > 0;
  if (inDoubt) markUncertain(context, placement, { spec, nowMs: context.clock.now() });
  else markDetached(context, placement);
}

function placementOf(context: Context, attachment: VolumeAttachment): Placement | undefined {
  const { world } = context;
  const node = attachment.spec.nodeName as NodeName | undefined;
  const name = attachment.metadata.name;
  if (!node || !name) return undefined;
  const { volume } = identify(context, attachment);
  const known = volume && world.find(volume, node);
  if (known?.attachmentName === name) return known;
  if (volume !== undefined && attachmentNameOf(volume, node) === name) return world.placement(volume, node);
  // By a known volume of that node whose VolumeAttachment has this name, else by the name alone.
  for (const placement of world.nodes.get(node)?.placements.values() ?? [])
    if (!isAttachmentOnly(placement.volume.name) && attachmentNameOf(placement.volume.name, node) === name)
      return placement;
  const orphan = world.placement(attachmentOnlyName(name), node);
  const missing = attachment.spec.source.persistentVolumeName ?? "";
  world.orphans.set(missing, including(world.orphans.get(missing) ?? NO_PLACEMENTS, orphan));
  return orphan;
}

/** Which volume it stands for: that of its PersistentVolume, or of the source written into it. */
function identify(
  { caches, registry }: Context,
  { spec: { source } }: VolumeAttachment,
): { volume: VolumeName | undefined; spec: VolumeSpec | undefined } {
  const inline = source.inlineVolumeSpec?.csi;
  if (inline?.driver && inline.volumeHandle) {
    const volume = { metadata: { name: "" }, spec: source.inlineVolumeSpec ?? {} };
    const spec: VolumeSpec = { kind: "persistent", volume, readOnly: false, migrated: "inline" };
    return { volume: csiVolumeName(inline), spec };
  }
  const persistent = caches.volumes.get((source.persistentVolumeName ?? "") as ObjectKey);
  if (persistent === undefined) return { volume: undefined, spec: undefined };
  const translation = translate({
    kind: "persistent",
    volume: persistent,
    readOnly: false,
    migrated: "none",
  });
  if (translation.kind === "untranslatable") return { volume: undefined, spec: undefined };
  return { volume: registry.volumeNameOf(translation.spec), spec: translation.spec };
}

/** A PersistentVolume came (back): what was only known by its VolumeAttachment turns out to be this volume. */
export function onVolumeAdded(context: Context, name: string): void {
  const orphans = context.world.orphans.get(name);
  if (orphans === undefined) return;
  context.world.orphans.delete(name);
  for (const orphan of orphans) {
    const object = attachmentOf(context, orphan);
    if (!orphan.busy) markDetached(context, orphan);
    if (object) onAttachment(context, { kind: "added", key: keyOf(object), object });
  }
}
