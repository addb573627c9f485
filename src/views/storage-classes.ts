import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { KubeObject } from "../kube/object.ts";
import type { Cluster } from "./cluster.ts";
import { createdAt, field, nameOf, objectsAt, textAt } from "./fields.ts";

const DEFAULT_CLASS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/** Marked as the default, newest first: of several the newest is given to claims without a class. */
export function defaultClasses(cluster: Cluster): readonly KubeObject[] {
  return cluster.objects.storageClasses
    .filter((item) => DEFAULT_CLASS.some((key) => field(item, "metadata", "annotations", key) === "true"))
    .sort((a, b) => (createdAt(b) ?? 0) - (createdAt(a) ?? 0));
}

export function claimsOfClass(cluster: Cluster, name: string): readonly PersistentVolumeClaim[] {
  return cluster.objects.claims.filter((claim) => textAt(claim, "spec", "storageClassName") === name);
}

/** Neither a class nor the wish for none. */
export function claimsWithoutClass(cluster: Cluster): readonly PersistentVolumeClaim[] {
  return cluster.objects.claims.filter((claim) => field(claim, "spec", "storageClassName") === undefined);
}

export function isUnbound(claim: KubeObject): boolean {
  const phase = textAt(claim, "status", "phase");
  return phase === "Pending" || phase === "";
}

/** Names of the nodes whose CSINode lists the driver. */
export function nodesWithDriver(cluster: Cluster, driver: string): readonly string[] {
  return cluster.objects.csiNodes
    .filter((item) => objectsAt(item, "spec", "drivers").some((of) => textAt(of, "name") === driver))
    .map(nameOf);
}

const PROVISIONED_BY = "pv.kubernetes.io/provisioned-by";

/** PersistentVolumes that it serves, or that it once made. */
export function volumesOfDriver(cluster: Cluster, driver: string): readonly KubeObject[] {
  return cluster.objects.volumes.filter(
    (pv) =>
      textAt(pv, "spec", "csi", "driver") === driver ||
      textAt(pv, "metadata", "annotations", PROVISIONED_BY) === driver,
  );
}
