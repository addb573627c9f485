import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { markDetached, markUncertain } from "./actual.ts";
import { volumeNamedBy, type AttachmentIdentity } from "../volumes/attachment-identity.ts";
import { mark, type Context } from "./context.ts";
import type { ForeignChange } from "./foreign.ts";
import { attachmentNameOf, isAttachmentOnly } from "./node-view.ts";
import { inherit } from "./new-node.ts";
import { tellNode } from "./telling.ts";
import type { Placement } from "./world.ts";

/** What a word about a VolumeAttachment of somebody else, or one that nobody can read, changes here. */

export function foreignSeen(context: Context, object: VolumeAttachment, identity: AttachmentIdentity): void {
  const change = context.foreign.seen(object, identity);
  if (change.isNew) tellNew(context, object, change.placements);
  enqueue(context, change);
}

export function foreignGone(context: Context, object: VolumeAttachment): void {
  const change = context.foreign.gone(object);
  for (const placement of change.left)
    if (placement.want && placement.hold) tellGone(context, object, placement);
  enqueue(context, change);
}

/** Every node of those volumes may have waited for it; and so may whoever found it by its trace. */
function enqueue(context: Context, { placements, left }: ForeignChange): void {
  for (const { volume } of [...placements, ...left])
    for (const placement of volume.placements) mark(context, placement);
  wakeWaiting(context);
}

export function wakeWaiting(context: Context): void {
  for (const placement of context.foreign.takeWaiting()) mark(context, placement);
}

function tellNew(context: Context, attachment: VolumeAttachment, held: readonly Placement[]): void {
  const { metadata, spec } = attachment;
  const [placement] = held;
  if (placement === undefined) return;
  const name = metadata.name ?? "";
  const volumes = held.map(({ volume }) => volume.name).join(", ");
  const what = isAttachmentOnly(placement.volume.name)
    ? `something that cannot be read (PersistentVolume ${volumeNamedBy(attachment) || "unknown"}) of driver ${spec.attacher}`
    : volumes;
  const message = `VolumeAttachment ${name} is not this controller's: it attaches ${what} to this node, counts as its holder, and is left to whoever made it`;
  context.log.warn("foreign attachment", { attachment: name, node: spec.nodeName, volumes });
  tellNode(context, placement, { type: "Warning", reason: "ForeignAttachment", message });
}

/** Its deletion asks the driver to detach, whoever else has the volume there. */
function tellGone(context: Context, { metadata }: VolumeAttachment, placement: Placement): void {
  const message = `VolumeAttachment ${metadata.name ?? ""}, which was not this controller's, was deleted while pods here use ${placement.volume.name}: its driver may have detached the volume under them`;
  context.log.warn("foreign attachment deleted", {
    attachment: metadata.name,
    volume: placement.volume.name,
  });
  tellNode(context, placement, { type: "Warning", reason: "ForeignAttachment", message });
}

/** The placement of a volume whose VolumeAttachment this is, should a pod of the node have come to want it. */
export function wantedTwin({ volume, node }: Placement): Placement | undefined {
  if (!isAttachmentOnly(volume.name)) return undefined;
  const name = attachmentNameOf(volume.name, node.name);
  for (const other of node.placements.values())
    if (other.want && !isAttachmentOnly(other.volume.name)) {
      other.attachmentName ??= attachmentNameOf(other.volume.name, node.name);
      if (other.attachmentName === name) return other;
    }
  return undefined;
}

/**
 * A pod wants a volume whose VolumeAttachment is here already, known by its name alone because it names a PersistentVolume
 * that is gone: the two are one, or the one would be detached as unwanted while the other is being mounted.
 */
export function adoptUnread(context: Context, placement: Placement): void {
  const unread = context.foreign.unreadTwin(placement);
  // While it is being detached, `plan.ts` waits for that.
  if (unread?.hold === undefined || unread.busy) return;
  if (placement.hold === undefined)
    markUncertain(context, placement, { spec: placement.want?.spec, nowMs: context.clock.now() });
  if (unread.node.inherited.has(unread)) inherit(placement);
  markDetached(context, unread);
  mark(context, placement);
}
