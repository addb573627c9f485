import type { Volume } from "kubernetes-types/core/v1.js";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { toKey, type ObjectKey } from "../../kube/object.ts";
import { classNameOf, isClaimedBy } from "../claims.ts";
import type { StorageClass } from "../kinds.ts";
import { SELECTED_NODE } from "../names.ts";
import { isSamePod, podName, type Blocker, type ClusterView } from "./view.ts";

/** The claims of a pod, by how far they are. */
export type PodClaims =
  | {
      readonly kind: "usable";
      readonly bound: readonly BoundClaim[];
      readonly delayed: readonly DelayedClaim[];
    }
  /** No node would do: something has to happen to the claim first. */
  | { readonly kind: "blocked"; readonly message: string; readonly until: readonly Blocker[] };

export interface BoundClaim {
  readonly key: ObjectKey;
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
}

/** Waits for its first pod: which node that is on decides what volume it gets. */
export interface DelayedClaim {
  readonly key: ObjectKey;
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly selectedNode: string | undefined;
}

export function claimsOf(pod: Pod, view: ClusterView): PodClaims {
  const bound: BoundClaim[] = [];
  const delayed: DelayedClaim[] = [];
  for (const use of claimUsesOf(pod)) {
    const state = stateOf(pod, use, view);
    if (state.kind === "blocked") return state;
    if (state.kind === "bound") bound.push(state);
    else delayed.push(state);
  }
  return usedElsewhere(pod, [...bound, ...delayed], view) ?? { kind: "usable", bound, delayed };
}

export interface ClaimUse {
  readonly key: ObjectKey;
  readonly name: string;
  readonly ephemeral: boolean;
}

/** Each claim once, however many volumes of the pod name it. */
export function claimUsesOf(pod: Pod): readonly ClaimUse[] {
  const uses = new Map<ObjectKey, ClaimUse>();
  for (const volume of pod.spec?.volumes ?? []) {
    const name = claimNameOf(pod, volume);
    if (name === undefined) continue;
    const key = toKey({ namespace: pod.metadata.namespace, name });
    uses.set(key, { key, name, ephemeral: Boolean(volume.ephemeral) });
  }
  return [...uses.values()];
}

export function claimNameOf(pod: Pod, volume: Volume): string | undefined {
  return volume.ephemeral ? `${podName(pod)}-${volume.name}` : volume.persistentVolumeClaim?.claimName;
}

/** The claim was made for this very pod; names are used again, uids are not. */
export function isMadeFor({ metadata }: PersistentVolumeClaim, pod: Pod): boolean {
  const controller = (metadata.ownerReferences ?? []).find((owner) => owner.controller === true);
  return Boolean(pod.metadata.uid) && controller?.uid === pod.metadata.uid;
}

type ClaimState =
  | ({ readonly kind: "bound" } & BoundClaim)
  | ({ readonly kind: "delayed" } & DelayedClaim)
  | Extract<PodClaims, { kind: "blocked" }>;

function stateOf(pod: Pod, { key, name, ephemeral }: ClaimUse, view: ClusterView): ClaimState {
  const claim = view.claim(key);
  if (!claim) {
    return blocked(
      ephemeral
        ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`
        : `persistentvolumeclaim "${name}" not found`,
    );
  }
  if (ephemeral && !isMadeFor(claim, pod))
    return blocked(
      `PVC ${key} was not created for pod ${toKey({ ...pod.metadata, name: podName(pod) })} (pod is not owner)`,
    );
  if (claim.metadata.deletionTimestamp) return blocked(`persistentvolumeclaim "${name}" is being deleted`);
  const volumeName = claim.spec?.volumeName ?? "";
  if (claim.status?.phase === "Lost") return blocked(lostText(name, volumeName));
  if (claim.status?.phase === "Bound" && volumeName) return boundState(key, claim, view);
  const storageClass = view.storageClass(classNameOf(claim) ?? "");
  const waits = storageClass?.volumeBindingMode === "WaitForFirstConsumer";
  const selectedNode = claim.metadata.annotations?.[SELECTED_NODE];
  // Half bound for a pod it was promised to is on its way; one that names a volume by itself is the binder's alone.
  const isUnderWay = selectedNode !== undefined || isPromisedBack(claim, view);
  if (!waits || (volumeName && !isUnderWay))
    return blocked("pod has unbound immediate PersistentVolumeClaims", ["class"]);
  return { kind: "delayed", key, claim, storageClass, selectedNode };
}

function isPromisedBack(claim: PersistentVolumeClaim, view: ClusterView): boolean {
  const volume = view.volume(claim.spec?.volumeName ?? "");
  return volume !== undefined && isClaimedBy(volume, claim);
}

function boundState(key: ObjectKey, claim: PersistentVolumeClaim, view: ClusterView): ClaimState {
  const name = claim.metadata.name ?? "";
  const volumeName = claim.spec?.volumeName ?? "";
  const volume = view.volume(volumeName);
  if (!volume) return blocked(lostText(name, volumeName), ["volume"]);
  if (!isClaimedBy(volume, claim))
    return blocked(
      `persistentvolumeclaim "${name}" bound to persistentvolume "${volumeName}", which is bound to another claim`,
      ["volume"],
    );
  return { kind: "bound", key, claim, volume };
}

function lostText(claim: string, volume: string): string {
  return `persistentvolumeclaim "${claim}" bound to non-existent persistentvolume "${volume}"`;
}

function blocked(message: string, until: readonly Blocker[] = []): Extract<PodClaims, { kind: "blocked" }> {
  return { kind: "blocked", message, until };
}

/** A claim for one pod at a time: a second pod waits until the first is gone, wherever it would go. */
function usedElsewhere(
  pod: Pod,
  claims: readonly { readonly key: ObjectKey; readonly claim: PersistentVolumeClaim }[],
  view: ClusterView,
): PodClaims | undefined {
  const taken = claims.find(
    ({ key, claim }) =>
      (claim.spec?.accessModes ?? []).includes("ReadWriteOncePod") &&
      view.podsUsing(key).some((other) => !isSamePod(other, pod)),
  );
  return taken && blocked(SAME_CLAIM, ["room"]);
}

const SAME_CLAIM =
  "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
