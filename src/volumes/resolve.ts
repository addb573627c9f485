import type { ContainerStatus, Volume } from "kubernetes-types/core/v1.js";
import type { OwnerReference } from "kubernetes-types/meta/v1.js";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import { toKey, type ObjectKey } from "../kube/object.ts";
import { specName, type VolumeSpec } from "./spec.ts";
import { translate } from "./translation/translate.ts";
import { isObject, metadataOf, text } from "./untrusted.ts";

export interface VolumeCaches {
  claim(key: ObjectKey): PersistentVolumeClaim | undefined;
  volume(name: string): PersistentVolume | undefined;
}

export type Resolution = { readonly kind: "resolved"; readonly spec: VolumeSpec } | Unresolved;

interface Unresolved {
  readonly kind: "unresolved";
  readonly why: UnresolvedReason;
  /** `namespace/name` of the claim, where there is one in play. */
  readonly claim: ObjectKey | undefined;
  readonly persistentVolume: string | undefined;
  /** For people: what is missing, on which object. */
  readonly message: string;
}

export type UnresolvedReason =
  | "claim-missing"
  | "claim-unbound"
  | "claim-not-owned"
  | "volume-missing"
  | "volume-not-bound-back"
  | "untranslatable";

/**
 * From a pod's volume to what it really is, or why that is not known. Follows claim and volume through the caches
 * as they are now, and trusts neither: a claim must be bound, an ephemeral one must be this very pod's, and the
 * volume must be bound back to that very claim. Objects of the caches are replaced and never changed, so a spec
 * shows the volume of this moment for as long as somebody keeps it.
 *
 * Never throws, whatever the objects look like.
 */
export function resolveVolume(pod: Pod, volume: Volume, caches: VolumeCaches): Resolution {
  if (!isObject(volume))
    return { ...NOTHING_IN_PLAY, why: "untranslatable", message: "the volume in the pod is no object" };
  const use = claimOf(pod, volume);
  if (!use) return toCsi(pod, { kind: "inline", volume }, NOTHING_IN_PLAY);

  const { key, readOnly } = use;
  const claim = boundClaim(pod, use, caches);
  if (claim.kind === "unresolved") return claim;
  const found = volumeOf(key, claim, caches);
  if (found.kind === "unresolved") return found;
  const inPlay = { kind: "unresolved", claim: key, persistentVolume: claim.volumeName } as const;
  return toCsi(pod, { kind: "persistent", volume: found.volume, readOnly, migrated: "none" }, inPlay);
}

/** `namespace/name` of the claim of each volume that has one. Runs for every pod of the cluster at every change. */
export function claimKeysOf(pod: Pod): ObjectKey[] {
  const volumes: unknown = pod.spec?.volumes;
  const keys: ObjectKey[] = [];
  if (!Array.isArray(volumes)) return keys;
  for (const volume of volumes as readonly Volume[]) {
    const claim = isObject(volume) ? claimOf(pod, volume) : undefined;
    if (claim) keys.push(claim.key);
  }
  return keys;
}

/**
 * Over, or being deleted with nothing running any more: its volumes may go. A container of which neither is said
 * that it waits nor that it terminated may well be running. A pod without container statuses never started any.
 */
export function isPodTerminated(pod: Pod): boolean {
  const { status } = pod;
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return true;
  return (
    Boolean(metadataOf(pod).deletionTimestamp) &&
    noneRuns(status?.initContainerStatuses) &&
    noneRuns(status?.containerStatuses) &&
    noneRuns(status?.ephemeralContainerStatuses)
  );
}

/** What is no list of statuses might hide one that runs. */
function noneRuns(statuses: unknown): boolean {
  if (statuses === undefined || statuses === null) return true;
  return Array.isArray(statuses) && statuses.every(isStopped);
}

function isStopped(status: unknown): boolean {
  const state = isObject(status) ? (status as ContainerStatus).state : undefined;
  return Boolean(state?.terminated) || Boolean(state?.waiting);
}

interface ClaimUse {
  readonly key: ObjectKey;
  readonly readOnly: boolean;
  /** Made for the pod, from a template in it. */
  readonly ephemeral: boolean;
}

/** Undefined for a volume without a claim, or whose claim has no name. */
function claimOf(pod: Pod, { name, persistentVolumeClaim, ephemeral }: Volume): ClaimUse | undefined {
  const { name: podName, namespace } = metadataOf(pod);
  const ephemeralName = text(podName) && text(name) && `${text(podName)}-${name}`;
  const claimName = ephemeral ? ephemeralName : text(persistentVolumeClaim?.claimName);
  if (!claimName) return undefined;
  return {
    key: toKey({ namespace: text(namespace), name: claimName }),
    readOnly: !ephemeral && persistentVolumeClaim?.readOnly === true,
    ephemeral: Boolean(ephemeral),
  };
}

const NOTHING_IN_PLAY = { kind: "unresolved", claim: undefined, persistentVolume: undefined } as const;

interface BoundClaim {
  readonly kind: "bound";
  readonly uid: string;
  readonly volumeName: string;
}

function boundClaim(pod: Pod, { key, ephemeral }: ClaimUse, caches: VolumeCaches): BoundClaim | Unresolved {
  const inPlay = { ...NOTHING_IN_PLAY, claim: key };
  const claim = caches.claim(key);
  if (!claim) return { ...inPlay, why: "claim-missing", message: `claim ${key} does not exist` };

  const phase = text(claim.status?.phase);
  const volumeName = text(claim.spec?.volumeName);
  if (phase !== "Bound" || !volumeName)
    return { ...inPlay, why: "claim-unbound", message: `claim ${key} is ${unboundness(phase)}` };
  if (ephemeral && !isOwnedBy(claim, pod))
    return {
      ...inPlay,
      why: "claim-not-owned",
      persistentVolume: volumeName,
      message: `claim ${key} was not made for this pod, and an ephemeral volume takes no other`,
    };
  return { kind: "bound", uid: text(metadataOf(claim).uid), volumeName };
}

function unboundness(phase: string): string {
  return phase === "Bound" ? "bound to a volume without a name" : `not bound: ${phase || "it has no phase"}`;
}

/** By the controller among its owners: names are used again, UIDs are not. */
function isOwnedBy(claim: PersistentVolumeClaim, pod: Pod): boolean {
  const owners: unknown = metadataOf(claim).ownerReferences;
  const { uid, namespace } = metadataOf(pod);
  if (!Array.isArray(owners) || !text(uid)) return false;
  const controller = (owners as readonly OwnerReference[]).find(
    (owner) => isObject(owner) && owner.controller === true,
  );
  return controller?.uid === uid && text(metadataOf(claim).namespace) === text(namespace);
}

function volumeOf(
  claim: ObjectKey,
  { uid, volumeName }: BoundClaim,
  caches: VolumeCaches,
): { readonly kind: "found"; readonly volume: PersistentVolume } | Unresolved {
  const inPlay = { kind: "unresolved", claim, persistentVolume: volumeName } as const;
  const volume = caches.volume(volumeName);
  if (!volume || !isObject(volume.metadata))
    return {
      ...inPlay,
      why: "volume-missing",
      message: `volume ${volumeName} of claim ${claim} does not exist`,
    };
  if (!uid || volume.spec?.claimRef?.uid !== uid)
    return {
      ...inPlay,
      why: "volume-not-bound-back",
      message: `volume ${volumeName} is not bound to claim ${claim}, which is bound to it`,
    };
  return { kind: "found", volume };
}

function toCsi(
  pod: Pod,
  spec: VolumeSpec,
  inPlay: Pick<Unresolved, "kind" | "claim" | "persistentVolume">,
): Resolution {
  const translation = translate(spec, text(metadataOf(pod).namespace));
  if (translation.kind === "translated") return { kind: "resolved", spec: translation.spec };
  const whose = inPlay.persistentVolume
    ? `volume ${inPlay.persistentVolume}`
    : `volume ${specName(spec)} of the pod`;
  return { ...inPlay, why: "untranslatable", message: `${whose}: ${translation.message}` };
}
