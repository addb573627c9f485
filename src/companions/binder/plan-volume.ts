import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { isBindCompleted } from "../claims.ts";
import { BOUND_BY_CONTROLLER, PROVISIONED_BY } from "../names.ts";
import type { Told } from "../waiting.ts";

export interface VolumeView {
  readonly volume: PersistentVolume;
  /** The claim of the name the volume gives, whatever its uid. */
  readonly claim: PersistentVolumeClaim | undefined;
  /** Whether the API server was asked for that claim just now; a cache may be behind, and a release is for good. */
  readonly confirmed: boolean;
}

export type VolumeAction =
  | { readonly kind: "status"; readonly change: object }
  /** Takes back the binder's half of a bind that lost. */
  | { readonly kind: "unbind"; readonly change: object }
  /** Ask the API server for the claim, then plan again. */
  | { readonly kind: "confirm" }
  /** The claim's side has to act. */
  | { readonly kind: "look-at-claim" };

export interface VolumePlan {
  readonly action?: VolumeAction;
  readonly tell?: Told;
}

export function planVolume(view: VolumeView): VolumePlan {
  const { volume, claim } = view;
  const ref = volume.spec?.claimRef;
  if (!ref?.uid) return toPhase(volume, "Available");
  if (!claim || claim.metadata.uid !== ref.uid) return planRelease(view);
  const named = claim.spec?.volumeName;
  if (named === volume.metadata.name) return toPhase(volume, "Bound");
  if (named) return planLoser(view);
  // Lost its reference by somebody's hand: the claim's side says so. Otherwise a bind that was cut off.
  return isBindCompleted(claim) ? {} : { action: { kind: "look-at-claim" } };
}

/** Nobody has the claim any more. */
function planRelease({ volume, confirmed }: VolumeView): VolumePlan {
  const phase = volume.status?.phase;
  const policy = volume.spec?.persistentVolumeReclaimPolicy;
  if (policy === "Recycle" && phase === "Released") return recycle();
  if (phase === "Released" || phase === "Failed") return {};
  if (!confirmed) return { action: { kind: "confirm" } };
  // The phase is written before the claim is: nobody ever had it, so nothing of anybody's is on it.
  return phase !== "Bound" && isOurChoice(volume) ? unbind(volume) : toPhase(volume, "Released");
}

/** The claim took another volume. One made for this claim alone is of no use to others; one of a person is. */
function planLoser({ volume, confirmed }: VolumeView): VolumePlan {
  if (!confirmed) return { action: { kind: "confirm" } };
  const { metadata, spec } = volume;
  const made = metadata.annotations?.[PROVISIONED_BY] !== undefined;
  if (made && spec?.persistentVolumeReclaimPolicy === "Delete") return toPhase(volume, "Released");
  return unbind(volume);
}

function isOurChoice({ metadata }: PersistentVolume): boolean {
  return metadata.annotations?.[BOUND_BY_CONTROLLER] !== undefined;
}

/** A name somebody else wrote stays; only what the binder added goes. */
function unbind(volume: PersistentVolume): VolumePlan {
  const claimRef = isOurChoice(volume) ? null : { uid: null, resourceVersion: null };
  const change = { metadata: { annotations: { [BOUND_BY_CONTROLLER]: null } }, spec: { claimRef } };
  return { action: { kind: "unbind", change } };
}

function recycle(): VolumePlan {
  const message =
    "Recycle is not supported: delete the volume by hand, or set its reclaim policy to Retain or Delete";
  return {
    action: { kind: "status", change: { status: { phase: "Failed", message } } },
    tell: { type: "Warning", reason: "VolumeFailedRecycle", message },
  };
}

function toPhase(volume: PersistentVolume, phase: string): VolumePlan {
  if (volume.status?.phase === phase) return {};
  return { action: { kind: "status", change: { status: { phase, message: null, reason: null } } } };
}
