import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { JsonPatchOperation } from "../kube/client/client.ts";
import { hasFinalizer, removeFinalizerPatch } from "../kube/finalizers.ts";
import { MIGRATED_TO_ANNOTATION } from "./names.ts";
import { isInTree } from "./source.ts";

/** Whose finalizer it is. */
export interface Holder {
  readonly driver: string;
  readonly finalizer: string;
}

/**
 * Whether our finalizer on a PersistentVolume has had its day: the volume is being deleted, or it is an in-tree one whose
 * migration to us was taken back.
 */
export function isToBeReleased(volume: PersistentVolume, { driver, finalizer }: Holder): boolean {
  if (!hasFinalizer(volume, finalizer)) return false;
  if (volume.metadata.deletionTimestamp) return true;
  return isInTree(volume) && volume.metadata.annotations?.[MIGRATED_TO_ANNOTATION] !== driver;
}

/** Takes it away, unless an attachment of whatever driver still names the volume: its deletion brings the key back. */
export function planVolume(
  volume: PersistentVolume,
  holder: Holder,
  { attachments }: { readonly attachments: number },
): readonly JsonPatchOperation[] | undefined {
  if (!isToBeReleased(volume, holder) || attachments > 0) return undefined;
  return removeFinalizerPatch(volume, holder.finalizer);
}
