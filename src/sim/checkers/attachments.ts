import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import type { StoredVolume } from "../storage.ts";
import type { World } from "../world.ts";

/** A VolumeAttachment that says attached, and that nobody deletes, keeps its disk on the node. */
export function watchAttachments(world: World): void {
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

  world.storages.on({ unpublished });
}
