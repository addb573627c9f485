import type { RawDefinition } from "./schema.ts";

/**
 * The three snapshot kinds, which come as custom resources and so are in no table of Kubernetes itself.
 * A custom resource keeps what it was sent, zero values too: every field counts as a pointer. They have
 * no protobuf numbers, because clients of custom resources send JSON, and no patch strategies, because
 * strategic merge patches of custom resources are refused.
 */
const GROUP_VERSION = "snapshot.storage.k8s.io/v1";
const PREFIX = "io.k8s.storage.snapshot.v1";

const typeMeta = { kind: { t: "string" }, apiVersion: { t: "string" } } as const;
const metadata = { t: "#io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", emit: 1 } as const;
const text = { t: "string", ptr: 1 } as const;
const requiredText = { ...text, required: 1 } as const;
const flag = { t: "boolean", ptr: 1 } as const;
const whole = { t: "int64", ptr: 1 } as const;

const error = { t: `#${PREFIX}.VolumeSnapshotError`, ptr: 1 } as const;

function part(name: string): { readonly t: string; readonly ptr: 1 } {
  return { t: `#${PREFIX}.${name}`, ptr: 1 };
}

function requiredPart(name: string): { readonly t: string; readonly ptr: 1; readonly required: 1 } {
  return { ...part(name), required: 1 };
}

const DEFINITIONS: Readonly<Record<string, RawDefinition>> = {
  VolumeSnapshot: {
    gvk: [`${GROUP_VERSION} VolumeSnapshot`],
    fields: {
      ...typeMeta,
      metadata,
      spec: requiredPart("VolumeSnapshotSpec"),
      status: part("VolumeSnapshotStatus"),
    },
  },
  VolumeSnapshotSpec: {
    fields: { source: requiredPart("VolumeSnapshotSource"), volumeSnapshotClassName: text },
  },
  VolumeSnapshotSource: { fields: { persistentVolumeClaimName: text, volumeSnapshotContentName: text } },
  VolumeSnapshotStatus: {
    fields: {
      boundVolumeSnapshotContentName: text,
      creationTime: { t: "time", ptr: 1 },
      error,
      readyToUse: flag,
      restoreSize: { t: "intOrString", ptr: 1 },
      volumeGroupSnapshotName: text,
    },
  },
  VolumeSnapshotError: { fields: { message: text, time: { t: "time", ptr: 1 } } },
  VolumeSnapshotContent: {
    gvk: [`${GROUP_VERSION} VolumeSnapshotContent`],
    fields: {
      ...typeMeta,
      metadata,
      spec: requiredPart("VolumeSnapshotContentSpec"),
      status: part("VolumeSnapshotContentStatus"),
    },
  },
  VolumeSnapshotContentSpec: {
    fields: {
      deletionPolicy: requiredText,
      driver: requiredText,
      source: requiredPart("VolumeSnapshotContentSource"),
      sourceVolumeMode: text,
      volumeSnapshotClassName: text,
      volumeSnapshotRef: { t: "#io.k8s.api.core.v1.ObjectReference", ptr: 1, required: 1 },
    },
  },
  VolumeSnapshotContentSource: { fields: { snapshotHandle: text, volumeHandle: text } },
  VolumeSnapshotContentStatus: {
    fields: {
      // Nanoseconds since 1970, unlike the field of that name in VolumeSnapshotStatus.
      creationTime: whole,
      error,
      readyToUse: flag,
      restoreSize: whole,
      snapshotHandle: text,
      volumeGroupSnapshotHandle: text,
    },
  },
  VolumeSnapshotClass: {
    gvk: [`${GROUP_VERSION} VolumeSnapshotClass`],
    fields: {
      ...typeMeta,
      metadata,
      deletionPolicy: requiredText,
      driver: requiredText,
      parameters: { t: "{string}", ptr: 1 },
    },
  },
};

export const SNAPSHOT_DEFINITIONS: Readonly<Record<string, RawDefinition>> = Object.fromEntries(
  Object.entries(DEFINITIONS).map(([name, definition]) => [`${PREFIX}.${name}`, definition]),
);
