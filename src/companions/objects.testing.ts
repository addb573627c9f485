import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { StorageClass, VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from "./kinds.ts";

/** Objects with defaults; a test names only what matters. */

export const OURS = "csi.test";

interface Sketch<T extends { spec?: object; status?: object }> {
  readonly metadata?: ObjectMeta;
  readonly spec?: Partial<NonNullable<T["spec"]>>;
  readonly status?: T["status"];
}

/** `default/data`, of class `slow`, for 1Gi. */
export function claim({ metadata, spec, status }: Sketch<PersistentVolumeClaim> = {}): PersistentVolumeClaim {
  return {
    metadata: { name: "data", namespace: "default", uid: "u1", ...metadata },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
      storageClassName: "slow",
      volumeMode: "Filesystem",
      ...spec,
    },
    status: status ?? { phase: "Pending" },
  };
}

/** `v`, of class `slow`, of 1Gi, available. */
export function volume({ metadata, spec, status }: Sketch<PersistentVolume> = {}): PersistentVolume {
  return {
    metadata: { name: "v", uid: "v1", ...metadata },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      storageClassName: "slow",
      volumeMode: "Filesystem",
      persistentVolumeReclaimPolicy: "Retain",
      csi: { driver: OURS, volumeHandle: "h" },
      ...spec,
    },
    status: status ?? { phase: "Available" },
  };
}

/** The reference of a volume to the claim above. */
export function ref(members: object = {}): NonNullable<NonNullable<PersistentVolume["spec"]>["claimRef"]> {
  return { namespace: "default", name: "data", uid: "u1", ...members };
}

export function storageClass(members: Partial<StorageClass> = {}): StorageClass {
  return { metadata: { name: "slow" }, provisioner: OURS, allowVolumeExpansion: true, ...members };
}

/** `default/s` of claim `data`. */
export function snapshot({ metadata, spec, status }: Sketch<VolumeSnapshot> = {}): VolumeSnapshot {
  return {
    metadata: { name: "s", namespace: "default", uid: "s1", ...metadata },
    spec: { source: { persistentVolumeClaimName: "data" }, ...spec },
    ...(status && { status }),
  };
}

/** The content of the snapshot above, not cut yet. */
export function content({
  metadata,
  spec,
  status,
}: Sketch<VolumeSnapshotContent> = {}): VolumeSnapshotContent {
  return {
    metadata: { name: "snapcontent-s1", uid: "c1", ...metadata },
    spec: {
      deletionPolicy: "Delete",
      driver: OURS,
      source: { volumeHandle: "h" },
      volumeSnapshotRef: { name: "s", namespace: "default", uid: "s1" },
      ...spec,
    },
    ...(status && { status }),
  };
}

export function snapshotClass(members: Partial<VolumeSnapshotClass> = {}): VolumeSnapshotClass {
  return { metadata: { name: "snap" }, driver: OURS, deletionPolicy: "Delete", ...members };
}
