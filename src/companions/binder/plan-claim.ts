import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { classNameOf, isBindCompleted, isClaimedBy } from "../claims.ts";
import type { StorageClass } from "../kinds.ts";
import {
  BOUND_BY_CONTROLLER,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
  STORAGE_PROVISIONER_BETA,
} from "../names.ts";
import type { Told, Waiting } from "../waiting.ts";
import { mismatchOf } from "./match.ts";

/** Everything one claim's binding depends on. */
export interface ClaimView {
  readonly claim: PersistentVolumeClaim;
  /** The volume the claim names, if it names one and that exists. */
  readonly volume: PersistentVolume | undefined;
  readonly storageClass: StorageClass | undefined;
  readonly defaultClass: StorageClass | undefined;
  /** The volume it should have (`findVolume`); asked only where one is looked for. */
  readonly find: (options: { readonly onlyPromised: boolean }) => PersistentVolume | undefined;
}

export type ClaimAction =
  | { readonly kind: "bind"; readonly volume: PersistentVolume }
  /** A change of the claim itself; the claim is planned again afterwards. */
  | { readonly kind: "change"; readonly change: object }
  | { readonly kind: "lose" };

export interface ClaimPlan {
  readonly action?: ClaimAction;
  readonly tell?: Told;
  readonly waitingFor?: Waiting;
}

export function planClaim(view: ClaimView): ClaimPlan {
  const { claim, volume } = view;
  if (isBindCompleted(claim)) return planBound(claim, volume);
  // A claim that goes is not given anything new; what was begun for it is undone by the volume's side.
  if (claim.metadata.deletionTimestamp) return {};
  return claim.spec?.volumeName ? planNamed(claim, volume) : planUnnamed(view);
}

/** What is bound stays bound, whatever class, size or labels say now. */
function planBound(claim: PersistentVolumeClaim, volume: PersistentVolume | undefined): ClaimPlan {
  if (!claim.spec?.volumeName)
    return lost(
      claim,
      "ClaimLost",
      "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
    );
  if (!volume)
    return lost(claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  if (volume.spec?.claimRef && !isClaimedBy(volume, claim)) {
    return lost(
      claim,
      "ClaimMisbound",
      "Two claims are bound to the same volume, this one is bound incorrectly",
    );
  }
  return { action: { kind: "bind", volume } };
}

function lost(
  claim: PersistentVolumeClaim,
  reason: "ClaimLost" | "ClaimMisbound",
  message: string,
): ClaimPlan {
  const waitingFor = waits("lost", message);
  if (claim.status?.phase === "Lost") return { waitingFor };
  return { action: { kind: "lose" }, tell: { type: "Warning", reason, message }, waitingFor };
}

/** Somebody asked for one volume and no other. */
function planNamed(claim: PersistentVolumeClaim, volume: PersistentVolume | undefined): ClaimPlan {
  const name = claim.spec?.volumeName ?? "";
  if (!volume) return { waitingFor: waits("volume-missing", `PersistentVolume "${name}" does not exist`) };
  if (isClaimedBy(volume, claim)) return { action: { kind: "bind", volume } };
  if (volume.spec?.claimRef) {
    const message = `volume "${name}" already bound to a different claim.`;
    const ours = claim.metadata.annotations?.[BOUND_BY_CONTROLLER] !== undefined;
    const tell: Told = { type: "Warning", reason: "FailedBinding", message };
    return { ...(!ours && { tell }), waitingFor: waits("volume-taken", message) };
  }
  const mismatch = mismatchOf(volume, claim);
  if (mismatch === undefined) return { action: { kind: "bind", volume } };
  const message = `Cannot bind to requested volume "${name}": ${mismatch}`;
  return {
    tell: { type: "Warning", reason: "VolumeMismatch", message },
    waitingFor: waits("volume-mismatch", message),
  };
}

function planUnnamed(view: ClaimView): ClaimPlan {
  const { claim, storageClass, defaultClass } = view;
  const later = storageClass?.volumeBindingMode === "WaitForFirstConsumer";
  const chosen = claim.metadata.annotations?.[SELECTED_NODE] !== undefined;
  // The scheduler has promised a volume that its node can reach, or has chosen a node for a new one: another would not do.
  const volume = view.find({ onlyPromised: later });
  if (volume) return { action: { kind: "bind", volume } };
  const className = classNameOf(claim);
  if (className === undefined && defaultClass?.metadata.name) {
    const change = { spec: { storageClassName: defaultClass.metadata.name } };
    return { action: { kind: "change", change } };
  }
  if (later && !chosen) {
    const message = "waiting for first consumer to be created before binding";
    return {
      tell: { type: "Normal", reason: "WaitForFirstConsumer", message },
      waitingFor: waits("first-consumer", message),
    };
  }
  return className ? planProvisioning(claim, className, storageClass) : nothingFits();
}

function nothingFits(): ClaimPlan {
  const message = "no persistent volumes available for this claim and no storage class is set";
  return {
    tell: { type: "Normal", reason: "FailedBinding", message },
    waitingFor: waits("no-volume", message),
  };
}

/** The binder only says who shall make the volume; that one watches for it. */
function planProvisioning(
  claim: PersistentVolumeClaim,
  className: string,
  storageClass: StorageClass | undefined,
): ClaimPlan {
  if (!storageClass) {
    const message = `storageclass.storage.k8s.io "${className}" not found`;
    return {
      tell: { type: "Warning", reason: "ProvisioningFailed", message },
      waitingFor: waits("class-missing", message),
    };
  }
  const { provisioner } = storageClass;
  if (provisioner === NO_PROVISIONER) return nothingFits();
  const annotations = { [STORAGE_PROVISIONER]: provisioner, [STORAGE_PROVISIONER_BETA]: provisioner };
  const asked = Object.entries(annotations).every(
    ([key, value]) => claim.metadata.annotations?.[key] === value,
  );
  const message =
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' ` +
    "or manually by the system administrator. If volume creation is delayed, please verify that the " +
    "provisioner is running and correctly registered.";
  if (!asked) return { action: { kind: "change", change: { metadata: { annotations } } } };
  return {
    tell: { type: "Normal", reason: "ExternalProvisioning", message },
    waitingFor: waits("provisioner", message),
  };
}

/** The provisioner of classes whose volumes are all made by hand. */
const NO_PROVISIONER = "kubernetes.io/no-provisioner";

function waits(reason: Waiting["reason"], message: string): Waiting {
  return { reason, message };
}
