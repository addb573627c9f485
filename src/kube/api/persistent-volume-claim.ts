import type { PersistentVolumeClaim as PersistentVolumeClaimV1 } from "kubernetes-types/core/v1.js";
import type { ObjectMeta, OwnerReference } from "kubernetes-types/meta/v1.js";
import { interned } from "../informer/intern.ts";
import type { KubeObject, Resource } from "../object.ts";

export type PersistentVolumeClaim = PersistentVolumeClaimV1 & KubeObject;

export const persistentVolumeClaims: Resource<PersistentVolumeClaim> = {
  group: "",
  version: "v1",
  kind: "PersistentVolumeClaim",
  plural: "persistentvolumeclaims",
  namespaced: true,
};

/**
 * What a cache of every claim of a cluster keeps: who it is, who controls it, to which volume it is bound. One
 * takes 300 bytes of memory, against 1,600 untrimmed.
 *
 * Dropped: what was asked for and what was given, labels, annotations and other owners.
 */
export function trimPersistentVolumeClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const { metadata, spec, status } = claim;
  return {
    metadata: trimMetadata(metadata),
    spec: spec?.volumeName ? { volumeName: spec.volumeName } : UNBOUND,
    status: status?.phase === "Bound" ? BOUND : { phase: status?.phase ?? "" },
  };
}

const UNBOUND = Object.freeze({});
const BOUND = Object.freeze({ phase: "Bound" });

function trimMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace = "", uid, resourceVersion } = metadata;
  const kept = { name, namespace: interned.text(namespace), uid, resourceVersion } as ObjectMeta;
  const controller = controllerOf(metadata.ownerReferences);
  if (controller) kept.ownerReferences = [controller];
  return kept;
}

/** The pod of an ephemeral claim is its controller, and is compared by UID; other owners matter to nobody here. */
function controllerOf(owners: unknown): OwnerReference | undefined {
  if (!Array.isArray(owners)) return undefined;
  const controller = (owners as (OwnerReference | null)[]).find((owner) => owner?.controller === true);
  return controller ? ({ uid: controller.uid, controller: true } as OwnerReference) : undefined;
}
