import type { ObjectReference, TypedLocalObjectReference } from "kubernetes-types/core/v1.js";
import type { StorageClass as StorageClassV1 } from "kubernetes-types/storage/v1.js";
import type { KubeObject, Resource } from "../kube/object.ts";

/** The kinds that only the companions read and write. The snapshot kinds are custom resources, in no package of types. */

export type StorageClass = StorageClassV1 & KubeObject;

export const storageClasses: Resource<StorageClass> = {
  group: "storage.k8s.io",
  version: "v1",
  kind: "StorageClass",
  plural: "storageclasses",
  namespaced: false,
};

const SNAPSHOT_GROUP = "snapshot.storage.k8s.io";

export interface SnapshotError {
  readonly message?: string;
  readonly time?: string;
}

export interface VolumeSnapshot extends KubeObject {
  readonly spec: {
    readonly source: {
      readonly persistentVolumeClaimName?: string;
      readonly volumeSnapshotContentName?: string;
    };
    readonly volumeSnapshotClassName?: string;
  };
  readonly status?: {
    readonly boundVolumeSnapshotContentName?: string;
    readonly creationTime?: string;
    readonly readyToUse?: boolean;
    readonly restoreSize?: string | number;
    readonly error?: SnapshotError;
  };
}

export const volumeSnapshots: Resource<VolumeSnapshot> = {
  group: SNAPSHOT_GROUP,
  version: "v1",
  kind: "VolumeSnapshot",
  plural: "volumesnapshots",
  namespaced: true,
};

export interface VolumeSnapshotContent extends KubeObject {
  readonly spec: {
    readonly deletionPolicy: "Delete" | "Retain";
    readonly driver: string;
    readonly source: { readonly volumeHandle?: string; readonly snapshotHandle?: string };
    readonly sourceVolumeMode?: string;
    readonly volumeSnapshotClassName?: string;
    readonly volumeSnapshotRef: ObjectReference;
  };
  readonly status?: {
    /** Nanoseconds since 1970. */
    readonly creationTime?: number;
    readonly readyToUse?: boolean;
    readonly restoreSize?: number;
    readonly snapshotHandle?: string;
    readonly error?: SnapshotError;
  };
}

export const volumeSnapshotContents: Resource<VolumeSnapshotContent> = {
  group: SNAPSHOT_GROUP,
  version: "v1",
  kind: "VolumeSnapshotContent",
  plural: "volumesnapshotcontents",
  namespaced: false,
};

export interface VolumeSnapshotClass extends KubeObject {
  readonly deletionPolicy: "Delete" | "Retain";
  readonly driver: string;
  readonly parameters?: Readonly<Record<string, string>>;
}

export const volumeSnapshotClasses: Resource<VolumeSnapshotClass> = {
  group: SNAPSHOT_GROUP,
  version: "v1",
  kind: "VolumeSnapshotClass",
  plural: "volumesnapshotclasses",
  namespaced: false,
};

/** Whether a claim's data source is a snapshot, a claim, or something a populator has to fill. */
export function sourceKind(source: TypedLocalObjectReference): "snapshot" | "claim" | "other" {
  const group = source.apiGroup ?? "";
  if (source.kind === "VolumeSnapshot" && group === SNAPSHOT_GROUP) return "snapshot";
  return source.kind === "PersistentVolumeClaim" && group === "" ? "claim" : "other";
}
