import type { Pod } from "../kube/api/pod.ts";
import type { KubeEvent } from "../kube/api/event.ts";
import type { KubeObject } from "../kube/object.ts";
import { ago, DRIVER, event, pod, runningPod, type Fields } from "./objects.testing.ts";

/* Builders of workloads and snapshots, with defaults as in objects.testing.ts. */

interface Parts {
  readonly metadata?: Fields;
  readonly spec?: Fields;
  readonly status?: Fields;
}

function object(metadata: Fields, spec: Fields, status: Fields, parts: Parts): KubeObject {
  return {
    metadata: { namespace: "shop", creationTimestamp: ago(3_600), ...metadata, ...parts.metadata },
    spec: { ...spec, ...parts.spec },
    status: { ...status, ...parts.status },
  } as unknown as KubeObject;
}

/** StatefulSet shop/db with claims data-db-0, data-db-1, … */
export function statefulSet(replicas: number, parts: Parts = {}): KubeObject {
  const volumeClaimTemplates = [{ metadata: { name: "data" }, spec: { storageClassName: "fast" } }];
  const status = { observedGeneration: 1, replicas, readyReplicas: replicas };
  return object({ name: "db" }, { replicas, volumeClaimTemplates }, status, parts);
}

/** Deployment shop/web, of which every pod has the claim shop/data. */
export function deployment(replicas: number, parts: Parts = {}): KubeObject {
  const status = { observedGeneration: 1, replicas, readyReplicas: replicas };
  return object({ name: "web" }, { replicas, strategy: { type: "RollingUpdate" } }, status, parts);
}

export function replicaSet(name: string, parts: Parts = {}): KubeObject {
  return object({ name, ownerReferences: [{ kind: "Deployment", name: "web" }] }, {}, {}, parts);
}

const READY = { conditions: [{ type: "Ready", status: "True" }] };

/** A pod of a StatefulSet or of a ReplicaSet, ready; or waiting, where it says so. */
export function memberPod(
  owner: readonly [kind: "StatefulSet" | "ReplicaSet", name: string],
  name: string,
  {
    waits = false,
    claim = "data",
    ...parts
  }: Parts & { readonly waits?: boolean; readonly claim?: string } = {},
): Pod {
  const ownerReferences = [{ kind: owner[0], name: owner[1], controller: true }];
  const metadata = { ownerReferences, ...parts.metadata };
  return waits
    ? pod(name, { claim, ...parts, metadata })
    : runningPod(name, { claim, ...parts, metadata, status: { ...READY, ...parts.status } });
}

export function quota(used: Fields, hard: Fields): KubeObject {
  return object({ name: "team-quota" }, { hard }, { used, hard }, {});
}

export const setEvent = (message: string): KubeEvent => event(["StatefulSet", "db"], "FailedCreate", message);
export const replicaSetEvent = (message: string): KubeEvent =>
  event(["ReplicaSet", "web-7d9c5"], "FailedCreate", message);

/** VolumeSnapshot shop/nightly of claim shop/data, not taken up by anybody yet. */
export function snapshot(parts: Parts = {}): KubeObject {
  const spec = { source: { persistentVolumeClaimName: "data" }, volumeSnapshotClassName: "snaps" };
  return object({ name: "nightly", uid: "uid-nightly", creationTimestamp: ago(900) }, spec, {}, parts);
}

/** With a content of its own. */
export function boundSnapshot(parts: Parts = {}): KubeObject {
  const finalizers = ["snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"];
  return snapshot({
    ...parts,
    metadata: { finalizers, ...parts.metadata },
    status: { boundVolumeSnapshotContentName: CONTENT, readyToUse: false, ...parts.status },
  });
}

export const CONTENT = "snapcontent-1";

export function content(parts: Parts = {}): KubeObject {
  const spec = {
    driver: DRIVER,
    deletionPolicy: "Delete",
    volumeSnapshotRef: { namespace: "shop", name: "nightly" },
  };
  return object({ name: CONTENT, namespace: undefined, creationTimestamp: ago(880) }, spec, {}, parts);
}

export function snapshotClass(name = "snaps", fields: Fields = {}): KubeObject {
  return { metadata: { name }, driver: DRIVER, deletionPolicy: "Delete", ...fields } as unknown as KubeObject;
}
