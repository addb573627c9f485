import { hasFinalizer } from "../kube/finalizers.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { volumeAttachmentName } from "../volumes/names.ts";
import { AttacherError } from "./errors.ts";
import { finalizerOf, HANDLE_ANNOTATION } from "./names.ts";
import { recordedSource } from "./record.ts";

/**
 * Which volume an attachment stands for. Three witnesses can be heard:
 * - the record in its annotations, written together with the finalizer before anything was published;
 * - its name, where the attach/detach controller gave it: a digest of handle, driver and node, which nobody can change;
 * - the PersistentVolume of the name it gives, which may be another one by now: the handle of a PersistentVolume cannot
 *   be changed, but it can be deleted and made anew.
 *
 * What was published is what the record says, so a detach goes by the record; but annotations can be edited, so not against
 * the word of name and PersistentVolume together. Where no witness can be believed nothing is sent to the driver: an
 * unpublish of the wrong volume takes it from under a pod, and leaves the right one attached.
 */
export type Verdict = "volume" | "record";

/** By whose handle to detach. `handle` is what the PersistentVolume says. Throws where that cannot be told. */
export function detachBy(attachment: VolumeAttachment, handle: string, migrated: boolean): Verdict {
  const recorded = recordedSource(attachment)?.volumeHandle;
  if (recorded === handle) return "volume";
  if (recorded === undefined) {
    if (migrated || !isNamedFor(attachment, handle, false)) return "volume";
    throw replaced(
      attachment,
      `its name was made for another handle than "${handle}", and it has no record of its own; if you know the handle ` +
        `it was attached by, write it into the annotation ${HANDLE_ANNOTATION}`,
    );
  }
  if (!isNamedFor(attachment, handle, true)) return "record";
  throw replaced(
    attachment,
    `its annotation ${HANDLE_ANNOTATION} says "${recorded}", but its name and the PersistentVolume stand for ` +
      `"${handle}"; correct the annotation`,
  );
}

/** Throws where the attachment was made, or published, for another volume than the PersistentVolume is now. */
export function refuseReplaced(
  attachment: VolumeAttachment,
  {
    handle,
    migrated,
    driver,
  }: { readonly handle: string; readonly migrated: boolean; readonly driver: string },
): void {
  const recorded = recordedSource(attachment)?.volumeHandle;
  // Without our finalizer nothing was published by it yet, and the record is only a leftover.
  if (recorded !== undefined && recorded !== handle && hasFinalizer(attachment, finalizerOf(driver)))
    throw replaced(
      attachment,
      `it was or may have been attached as "${recorded}", and the PersistentVolume has "${handle}" now`,
    );
  if (!migrated && isNamedFor(attachment, handle, false))
    throw replaced(attachment, `its name was made for another handle than "${handle}"`);
}

const DIGEST = /^csi-[0-9a-f]{64}$/;

/** Whether its name, where it is a digest, is (`expected`) or is not the one of this handle; false of any other name. */
function isNamedFor({ metadata, spec }: VolumeAttachment, volumeHandle: string, expected: boolean): boolean {
  const { name = "" } = metadata;
  if (!DIGEST.test(name)) return false;
  return (volumeAttachmentName({ driver: spec.attacher, volumeHandle }, spec.nodeName) === name) === expected;
}

function replaced({ metadata, spec }: VolumeAttachment, why: string): AttacherError {
  const name = spec.source.persistentVolumeName ?? "";
  return new AttacherError(
    "VolumeReplaced",
    `persistentvolume "${name}" is not the one VolumeAttachment ${metadata.name} is for: ${why}`,
  );
}
