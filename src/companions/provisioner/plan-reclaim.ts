import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import { PROVISIONED_BY, PROVISIONER_FINALIZER } from "../names.ts";
import type { Waiting } from "../waiting.ts";

export interface ReclaimView {
  readonly volume: PersistentVolume;
  readonly driver: string;
  /** VolumeAttachments that name the volume, whatever their state. */
  readonly attachments: number;
}

export type ReclaimAction =
  /** Put the finalizer on, which keeps the record until the driver has let go. */
  | { readonly kind: "hold" }
  /**
   * Delete the PersistentVolume in exactly the version looked at. It stays, held by the finalizer, but nobody can bind it
   * any more: only now may the data go.
   */
  | { readonly kind: "condemn" }
  | { readonly kind: "delete-volume" }
  /** Nothing is left to do for the driver. */
  | { readonly kind: "release" };

export interface ReclaimPlan {
  readonly action?: ReclaimAction;
  readonly waitingFor?: Waiting;
}

export function planReclaim({ volume, driver, attachments }: ReclaimView): ReclaimPlan {
  const { metadata, spec } = volume;
  const ours = metadata.annotations?.[PROVISIONED_BY] === driver && spec?.csi?.driver === driver;
  if (!ours) return {};
  const held = hasFinalizer(volume, PROVISIONER_FINALIZER);
  const going = metadata.deletionTimestamp !== undefined;
  if (spec.persistentVolumeReclaimPolicy !== "Delete") {
    return held && going ? { action: { kind: "release" } } : {};
  }
  if (!isFree(volume, { going }) || (going && !held)) return {};
  if (attachments > 0) {
    const message = `${attachments} VolumeAttachment${attachments === 1 ? "" : "s"} of it`;
    return { waitingFor: { reason: "still-attached", message } };
  }
  if (!held) return { action: { kind: "hold" } };
  return { action: { kind: going ? "delete-volume" : "condemn" } };
}

/** Nobody has it: the binder said so, or nobody ever had it and a person deleted it. */
function isFree({ spec, status }: PersistentVolume, { going }: { readonly going: boolean }): boolean {
  const phase = status?.phase;
  if (phase === "Released" || phase === "Failed") return true;
  return going && phase === "Available" && !spec?.claimRef?.uid;
}
