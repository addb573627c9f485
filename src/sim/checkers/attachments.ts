import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import { isByHand } from "../acts/attachments.ts";
import type { StoredVolume } from "../storage.ts";
import type { World } from "../world.ts";

const LOOK_MS = 500;

/**
 * A VolumeAttachment that says attached, and that nobody deletes, keeps its disk on the node; and one that somebody made by
 * hand is deleted by him alone.
 */
export function watchAttachments(world: World): void {
  const clock = world.scheduler.createClock();
  const byHand = new Map<string, string>();

  function unpublished({ handle }: StoredVolume, nodeId: string): void {
    for (const attachment of attachments()) {
      const { metadata, spec, status } = attachment;
      if (status?.attached !== true || metadata.deletionTimestamp !== undefined) continue;
      if (world.nodeOf(nodeId)?.name !== spec.nodeName || handleOf(attachment) !== handle) continue;
      if ((metadata.annotations?.["csi.alpha.kubernetes.io/node-id"] ?? nodeId) !== nodeId) continue;
      world.violate(
        `attachment: ${handle} was taken from ${spec.nodeName}, where VolumeAttachment ${metadata.name} says attached`,
      );
    }
  }

  function handleOf({ metadata, spec }: VolumeAttachment): string | undefined {
    const recorded = metadata.annotations?.["mooring.dev/volume-handle"];
    const volume = world.objects.get("persistentvolumes", spec.source.persistentVolumeName ?? "");
    return recorded ?? volume?.spec?.csi?.volumeHandle;
  }

  function attachments(): readonly VolumeAttachment[] {
    return world.objects.all("volumeattachments.storage.k8s.io");
  }

  function look(): void {
    const present = new Map<string, string>();
    for (const { metadata } of attachments()) {
      const { name = "", uid = "", deletionTimestamp } = metadata;
      if (isByHand(metadata) && deletionTimestamp === undefined) present.set(name, uid);
    }
    for (const [name, uid] of byHand)
      if (present.get(name) !== uid && !world.byHand.letGo.has(uid))
        world.violate(`by-hand: VolumeAttachment ${name} was deleted, but not by who made it`);
    byHand.clear();
    for (const [name, uid] of present) byHand.set(name, uid);
    clock.after(LOOK_MS, look);
  }
  look();

  world.storages.on({ unpublished });
}
