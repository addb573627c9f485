import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { identify, type AttachmentIdentity } from "../volumes/attachment-identity.ts";
import {
  isOwnAttachmentName,
  splitCsiVolume,
  splitVolumeName,
  volumeAttachmentName,
} from "../volumes/names.ts";
import { isObject } from "../volumes/untrusted.ts";
import { nameOf, textAt } from "./fields.ts";

/**
 * VolumeAttachments by the disk they stand for, which two PersistentVolumes may name, and of which a VolumeAttachment may
 * stand under any name. What attach/detach controllers make has a name that driver, handle and node give; any other was made
 * by somebody else, and no controller deletes it.
 */
export interface Disks {
  /** Every one that has, or may have, this disk; by its unique name. */
  attachmentsOf(uniqueName: string): readonly VolumeAttachment[];
  isForeign(attachment: VolumeAttachment): boolean;
}

export function createDisks(
  attachments: readonly VolumeAttachment[],
  volumeNamed: (name: string) => PersistentVolume | undefined,
): Disks {
  const identities = new Map(attachments.map((item) => [item, identityOf(item, volumeNamed)]));
  const byVolume = new Map<string, VolumeAttachment[]>();
  /** A name like ours whose content says nothing, or something else: the disk whose digest it is may be meant. */
  const byDigest: VolumeAttachment[] = [];
  for (const [item, identity] of identities) {
    for (const volume of volumesOf(identity)) byVolume.set(volume, [...(byVolume.get(volume) ?? []), item]);
    if (identity !== undefined && identity.kind !== "own" && isOwnAttachmentName(nameOf(item)))
      byDigest.push(item);
  }
  return {
    attachmentsOf(uniqueName) {
      const csi = splitCsiVolume(splitVolumeName(uniqueName)?.pluginVolume ?? "");
      const named = csi
        ? byDigest.filter(
            (item) => nameOf(item) === volumeAttachmentName(csi, textAt(item, "spec", "nodeName")),
          )
        : [];
      return [...new Set([...(byVolume.get(uniqueName) ?? []), ...named])];
    },
    isForeign: (attachment) => identities.get(attachment)?.kind === "foreign",
  };
}

/** Undefined for an object that is not one. */
function identityOf(
  attachment: VolumeAttachment,
  volumeNamed: (name: string) => PersistentVolume | undefined,
): AttachmentIdentity | undefined {
  return isObject(attachment.spec) ? identify(attachment, volumeNamed) : undefined;
}

function volumesOf(identity: AttachmentIdentity | undefined): readonly string[] {
  if (identity === undefined || identity.kind === "own-unread") return [];
  return identity.kind === "own" ? [identity.volume] : identity.volumes;
}
