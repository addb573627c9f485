import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Delta } from "../kube/informer/store.ts";
import { keyOf, type ObjectKey } from "../kube/object.ts";
import {
  csiVolumeName,
  isOwnAttachmentName,
  splitCsiVolume,
  splitVolumeName,
  type NodeName,
} from "../volumes/names.ts";
import { csiSourceOf, specName, type VolumeSpec } from "../volumes/spec.ts";
import { translate } from "../volumes/translation/translate.ts";
import { text } from "../volumes/untrusted.ts";
import { learnSpec, markDetached, markUncertain } from "./actual.ts";
import {
  identify,
  isUnread,
  standsFor,
  volumeNamedBy,
  type AttachmentIdentity,
} from "../volumes/attachment-identity.ts";
import { mark, markVolume, operationKey, type Context } from "./context.ts";
import { foreignGone, foreignSeen } from "./foreign-events.ts";
import { attachmentNameOf, attachmentOnlyName, isAttachmentOnly } from "./node-view.ts";
import { isOlderThanNode } from "./new-node.ts";
import { inheritIn } from "./silent-nodes.ts";
import type { Hold, Placement } from "./world.ts";

/**
 * VolumeAttachments as evidence of what may be attached. One that nobody here made is not forgotten: whether it was
 * found at the start or appears later, whether its PersistentVolume is there or not, whatever its name, the volume counts
 * as held by its node until the VolumeAttachment is gone.
 */
export function onAttachment(context: Context, { kind, object }: Delta<VolumeAttachment>): void {
  const { name = "" } = object.metadata;
  context.watch.notify(name);
  wakeWaiters(context, name, kind);
  if (!text(object.spec.nodeName) || !name) return;
  const identity = identifyIn(context, object);
  if (kind === "deleted") foreignGone(context, object);
  else foreignSeen(context, object, identity);
  const placement = placementOf(context, object, identity);
  if (placement === undefined) return;
  placement.attachmentName = name;
  if (identity.kind === "foreign") mark(context, placement);
  else if (kind === "deleted") attachmentGone(context, placement);
  else attachmentSeen(context, placement, { object, spec: specOf(identity) });
  context.world.tidy(placement);
}

/** Whoever waits for a VolumeAttachment of this name, which may be for another node than it says. */
function wakeWaiters(context: Context, name: string, kind: Delta<VolumeAttachment>["kind"]): void {
  for (const placement of context.world.waiters.onAttachment(name)) {
    // What stood in the way is gone: no reason to wait for the back-off either.
    if (kind === "deleted") context.operations.resetBackoff(operationKey(placement));
    mark(context, placement);
  }
}

function identifyIn({ caches, foreign }: Context, attachment: VolumeAttachment): AttachmentIdentity {
  const identity = identify(attachment, (name) => caches.volumes.get(name as ObjectKey));
  // Its PersistentVolume has told what it is: that this is gone now makes it nobody else's.
  if (identity.kind === "own-unread" && foreign.knows(attachment))
    return { kind: "foreign", volumes: [], spec: undefined };
  return identity;
}

function specOf(identity: AttachmentIdentity): VolumeSpec | undefined {
  return identity.kind === "own-unread" ? undefined : identity.spec;
}

/** The cached VolumeAttachment of this volume on this node. */
export function attachmentOf({ watch }: Context, placement: Placement): VolumeAttachment | undefined {
  const name = nameOf(placement);
  return name === undefined ? undefined : watch.current(name);
}

/** What it says about a placement; `mismatch` where it stands for something else. */
export function attachmentVerdict(
  context: Context,
  placement: Placement,
): "attached" | "not-attached" | "mismatch" | "unknown" {
  const attachment = attachmentOf(context, placement);
  if (attachment === undefined) return "unknown";
  const { volume, node } = placement;
  const source = splitCsiVolume(splitVolumeName(volume.name)?.pluginVolume ?? "");
  const volumeNamed = (name: string) => context.caches.volumes.get(name as ObjectKey);
  if (source && !standsFor(attachment, { source, node: node.name }, volumeNamed)) return "mismatch";
  if (isAttachmentOnly(volume.name) && !isUnread(attachment, node.name, volumeNamed)) return "mismatch";
  return attachment.status?.attached === true ? "attached" : "not-attached";
}

/**
 * A VolumeAttachment of ours for this very disk whose PersistentVolume is gone and whose attacher has reported an attachError:
 * the attacher can never attach it, while a pod wants the disk by another PersistentVolume. An attached one is no orphan, since
 * the pod can use it as it is. A cache that has not seen a new PersistentVolume yet costs one detach of what is not attached.
 */
export function isOrphaned(context: Context, placement: Placement): boolean {
  const attachment = attachmentOf(context, placement);
  if (attachment === undefined || placement.want === undefined || attachment.metadata.deletionTimestamp)
    return false;
  const { status } = attachment;
  if (status?.attached === true || status?.attachError === undefined) return false;
  const named = volumeNamedBy(attachment);
  if (named === "" || named === specName(placement.want.spec)) return false;
  const gone = context.caches.volumes.get(named as ObjectKey) === undefined;
  return gone && attachmentVerdict(context, placement) === "not-attached";
}

function attachmentSeen(
  context: Context,
  placement: Placement,
  { object, spec }: { readonly object: VolumeAttachment; readonly spec: VolumeSpec | undefined },
): void {
  const { hold, busy, want } = placement;
  // Our own attach has made it, or is about to find it.
  if (busy) return;
  if (hold === undefined) {
    markUncertain(context, placement, { spec, nowMs: context.clock.now() });
    if (isOlderThanNode(object, placement.node)) inheritIn(context, placement);
    markVolume(context, placement);
    return;
  }
  // Listed by its node and found by name at the start: now its spec is known, and with it its claim and access modes.
  if (hold.spec === undefined) learnSpec(context, placement, spec);
  if (want && !hold.confirmed && object.status?.attached === true) {
    // The attacher got it done by itself after we gave up: no reason to wait for the back-off.
    context.operations.resetBackoff(operationKey(placement));
    mark(context, placement);
  } else if (!hold.confirmed || object.status?.attached !== true) {
    mark(context, placement);
  }
}

/**
 * An operation has ended, and a VolumeAttachment is there: somebody made it anew while we waited for the end of the old one,
 * when nobody here was listening. Of one that was known by its name alone and can be read by now, another placement was told:
 * two that hold it would each undo what the other does.
 */
export function seenWhileBusy(context: Context, placement: Placement): void {
  const object = attachmentOf(context, placement);
  if (object === undefined) return;
  if (attachmentVerdict(context, placement) === "mismatch") {
    if (isAttachmentOnly(placement.volume.name)) markDetached(context, placement);
  } else if (placement.hold === undefined) {
    attachmentSeen(context, placement, { object, spec: specOf(identifyIn(context, object)) });
  }
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
  const { volume, node, attachmentName = "", want } = placement;
  const inDoubt = context.doubts.remainingMs(attachmentName) > 0;
  context.log.info("attachment gone", {
    volume: volume.name,
    node: node.name,
    attachment: attachmentName,
    wanted: want !== undefined,
    mayComeBack: inDoubt,
  });
  if (inDoubt) markUncertain(context, placement, { spec, nowMs: context.clock.now() });
  else markDetached(context, placement);
}

/** Undefined for one of somebody else's whose name no volume of the node has. */
function placementOf(
  { world }: Context,
  { metadata: { name = "" }, spec }: VolumeAttachment,
  identity: AttachmentIdentity,
): Placement | undefined {
  const node = spec.nodeName as NodeName;
  if (identity.kind === "own") return world.placement(identity.volume, node);
  if (!isOwnAttachmentName(name)) return undefined;
  // By a known volume of that node whose VolumeAttachment has this name, else by the name alone.
  for (const placement of world.nodes.get(node)?.placements.values() ?? [])
    if (!isAttachmentOnly(placement.volume.name) && nameOf(placement) === name) return placement;
  return identity.kind === "own-unread" ? world.placement(attachmentOnlyName(name), node) : undefined;
}

function nameOf(placement: Placement): string | undefined {
  return (placement.attachmentName ??= attachmentNameOf(placement.volume.name, placement.node.name));
}

/** A new PersistentVolume for this disk: what could not be attached without one need not wait for its back-off. */
export function retryWith(context: Context, volume: PersistentVolume): void {
  for (const placement of placementsOf(context, volume)) {
    if (placement.want === undefined || placement.hold?.confirmed) continue;
    context.operations.resetBackoff(operationKey(placement));
    mark(context, placement);
  }
}

/** A PersistentVolume came (back): what was only known by its VolumeAttachment turns out to be this volume, or another. */
export function onVolumeAdded(context: Context, volume: string): void {
  for (const name of context.foreign.takeMissing(volume)) {
    const object = context.watch.current(name);
    if (object === undefined) continue;
    const unread = context.world.find(attachmentOnlyName(name), object.spec.nodeName as NodeName);
    if (unread && !unread.busy) markDetached(context, unread);
    onAttachment(context, { kind: "added", key: keyOf(object), object });
  }
}

/** Those that name it have to be read again should a PersistentVolume of that name come back as another disk. */
export function onVolumeGone(context: Context, volume: PersistentVolume): void {
  const { world, foreign } = context;
  const names = placementsOf(context, volume).flatMap((placement) => [
    nameOf(placement) ?? "",
    ...placement.foreign.map(({ name }) => name),
  ]);
  const namesIt = (name: string) => {
    const attachment = context.watch.current(name);
    return attachment !== undefined && volumeNamedBy(attachment) === volume.metadata.name;
  };
  foreign.volumeGone(volume.metadata.name ?? "", names.filter(namesIt));
  // What stood for that volume is known by its name alone now, and may be another's.
  for (const name of [...world.waiters.attachments()].filter(namesIt)) wakeWaiters(context, name, "updated");
}

function placementsOf({ world }: Context, volume: PersistentVolume): readonly Placement[] {
  const translation = translate({ kind: "persistent", volume, readOnly: false, migrated: "none" });
  const source = translation.kind === "untranslatable" ? undefined : csiSourceOf(translation.spec);
  return source ? (world.volumes.get(csiVolumeName(source))?.placements ?? []) : [];
}
