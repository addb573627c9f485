import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { hasFinalizer } from "../../kube/finalizers.ts";
import { classNameOf, sourceOf } from "../claims.ts";
import { sourceKind, type StorageClass } from "../kinds.ts";
import {
  PROVISIONING_FINALIZER,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
  STORAGE_PROVISIONER_BETA,
} from "../names.ts";
import type { Told, Waiting } from "../waiting.ts";

export interface ProvisionView {
  readonly claim: PersistentVolumeClaim;
  readonly driver: string;
  readonly storageClass: StorageClass | undefined;
  /** The volume of the name that this claim's volume has. */
  readonly volume: PersistentVolume | undefined;
  /** Whether it is certain that the driver has no volume for this claim. Never so after a restart or a lost answer. */
  readonly certainlyNone: boolean;
}

export type ProvisionAction =
  /** Have the driver make the volume, and record it. */
  | { readonly kind: "provision"; readonly storageClass: StorageClass; readonly node: string | undefined }
  /**
   * Nobody wants the volume any more, but the driver may have made it. Asking for it once more tells which it is; the
   * PersistentVolume made of the answer is then reclaimed like any other.
   */
  | { readonly kind: "settle"; readonly storageClass: StorageClass; readonly node: string | undefined }
  /** The claim need not be held any longer. */
  | { readonly kind: "release" };

export interface ProvisionPlan {
  readonly action?: ProvisionAction;
  readonly tell?: Told;
  readonly waitingFor?: Waiting;
}

/** The name of the volume of a claim: unique, and the same however often it is asked for. */
export function volumeNameOf({ metadata }: PersistentVolumeClaim): string {
  return `pvc-${metadata.uid}`;
}

export function planProvision(view: ProvisionView): ProvisionPlan {
  const { claim, volume, certainlyNone } = view;
  if (!isOurs(view)) return {};
  const held = hasFinalizer(claim, PROVISIONING_FINALIZER);
  const recorded = volume?.spec?.claimRef?.uid === claim.metadata.uid;
  if (held && (recorded || (isAbandoned(claim) && certainlyNone))) return { action: { kind: "release" } };
  if (recorded || (!held && !isWanted(view))) return {};
  return isAbandoned(claim) ? planSettle(view) : planWanted(view);
}

/** Going, or bound to a volume that came from elsewhere. */
function isAbandoned({ metadata, spec }: PersistentVolumeClaim): boolean {
  return metadata.deletionTimestamp !== undefined || Boolean(spec?.volumeName);
}

/**
 * The finalizer has one name for all drivers: a claim that is held tells by whom only in what it asked for. Asked to settle the
 * claim of another, a driver would make a volume under its name, and whoever holds the claim would take its own for recorded.
 */
function isOurs({ claim, driver, storageClass }: ProvisionView): boolean {
  return (askedOf(claim) ?? storageClass?.provisioner ?? driver) === driver;
}

/** The binder has asked this driver, and nobody else has given the claim a volume. */
function isWanted({ claim, driver }: ProvisionView): boolean {
  return askedOf(claim) === driver && !isAbandoned(claim);
}

function askedOf({ metadata }: PersistentVolumeClaim): string | undefined {
  const { annotations = {} } = metadata;
  return annotations[STORAGE_PROVISIONER] ?? annotations[STORAGE_PROVISIONER_BETA];
}

function planWanted({ claim, driver, storageClass }: ProvisionView): ProvisionPlan {
  if (!storageClass) return missingClass(claim);
  if (storageClass.provisioner !== driver) return {};
  const node = claim.metadata.annotations?.[SELECTED_NODE];
  if (storageClass.volumeBindingMode === "WaitForFirstConsumer" && node === undefined) {
    const message = "waiting for first consumer to be created before binding";
    return { waitingFor: { reason: "first-consumer", message } };
  }
  const source = sourceOf(claim);
  if (source && sourceKind(source) === "other") {
    const message = "Assuming an external populator will provision the volume";
    return {
      tell: { type: "Normal", reason: "Provisioning", message },
      waitingFor: { reason: "provisioner", message },
    };
  }
  return { action: { kind: "provision", storageClass, node } };
}

function planSettle({ claim, storageClass }: ProvisionView): ProvisionPlan {
  if (!storageClass) return missingClass(claim);
  return { action: { kind: "settle", storageClass, node: claim.metadata.annotations?.[SELECTED_NODE] } };
}

function missingClass(claim: PersistentVolumeClaim): ProvisionPlan {
  const name = classNameOf(claim) ?? "";
  const gone = claim.metadata.deletionTimestamp
    ? "; its parameters are needed to find the volume that may have been made. Bring the class back, or take the " +
      `finalizer ${PROVISIONING_FINALIZER} off once the driver has no volume ${volumeNameOf(claim)}`
    : "";
  const message = `storageclass.storage.k8s.io "${name}" not found${gone}`;
  return {
    tell: { type: "Warning", reason: "ProvisioningFailed", message },
    waitingFor: { reason: "class-missing", message },
  };
}
