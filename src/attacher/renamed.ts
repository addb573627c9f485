import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { hasFinalizer } from "../kube/finalizers.ts";
import { toKey } from "../kube/object.ts";
import { BY_HANDLE, type AttacherCaches } from "./caches.ts";
import { operationOf } from "./plan.ts";
import { recordedSource } from "./record.ts";
import { driverOfVolume, volumeNameOf } from "./source.ts";

/**
 * The PersistentVolume of an attachment: the one that it names, or, where that is gone in the middle of an attach, another one of
 * the disk that was recorded when the attach began. Whether that disk has been published nobody knows, and a controller
 * deletes the attachment only once its node does not list the disk in use; a kubelet lists what a pod waits for. So the attach
 * is finished: the pod waits for this very disk, whose PersistentVolume was made again under another name.
 */
export function volumeFor(
  { volumes }: Pick<AttacherCaches, "volumes">,
  attachment: VolumeAttachment,
  driver: { readonly name: string; readonly finalizer: string },
): PersistentVolume | undefined {
  const name = volumeNameOf(attachment);
  if (name === "") return undefined;
  const named = volumes.get(toKey({ name }));
  if (named !== undefined || operationOf(attachment) === "detach") return named;
  const recorded = recordedSource(attachment);
  // Without our finalizer nothing was published by it yet: it is deleted and made for the other one.
  if (recorded === undefined || !hasFinalizer(attachment, driver.finalizer)) return undefined;
  const [other, ...more] = volumes
    .byIndex(BY_HANDLE, recorded.volumeHandle)
    .filter((volume) => !volume.metadata.deletionTimestamp && driverOfVolume(volume) === driver.name);
  // They may tell the driver different things about the disk, and nobody says which is meant.
  return more.length === 0 ? other : undefined;
}
