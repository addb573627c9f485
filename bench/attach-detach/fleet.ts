import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import { csiVolumeName, volumeAttachmentName } from "../../src/volumes/names.ts";
import { DRIVER, namespaceOf, nodeName } from "../informer/names.ts";
import { compile, hex, hole, uidOf } from "../informer/template.ts";

/**
 * A cluster made of numbers: volume `i` has a claim, and while `i < attached` a pod on node `i % nodes` and a
 * VolumeAttachment that is attached. The rest is spare, for pods still to come. Objects are written when they are asked
 * for, so that only the controller's own copies take memory. They hold what an attach/detach controller reads, and little
 * else: what is trimmed away costs time on the way in, which `bench informer` measures.
 */
export interface Fleet {
  readonly nodes: number;
  readonly attached: number;
  readonly spare: number;
}

/** Of objects that were there from the beginning; what is written later gets higher ones. */
export const FIRST_VERSION = 1_000;

export function handleOf(volume: number): string {
  return `vol-${hex(volume, 31, 17)}`;
}

export function nodeOf({ nodes }: Fleet, volume: number): string {
  return nodeName(volume % nodes);
}

export function attachmentName(fleet: Fleet, volume: number): string {
  return volumeAttachmentName({ driver: DRIVER, volumeHandle: handleOf(volume) }, nodeOf(fleet, volume));
}

function volumeName(volume: number): string {
  return `pvc-${uidOf(volume, 32)}`;
}

function claimName(volume: number): string {
  return `data-${volume.toString(36)}`;
}

const podTemplate = compile({
  metadata: {
    name: hole("name"),
    namespace: hole("namespace"),
    uid: hole("uid"),
    resourceVersion: hole("version"),
    creationTimestamp: "2026-01-02T03:04:05Z",
  },
  spec: {
    nodeName: hole("node"),
    containers: [{ name: "web", image: "web:1" }],
    volumes: [
      { name: "data", persistentVolumeClaim: { claimName: hole("claim") } },
      { name: "config", configMap: { name: "web" } },
    ],
  },
  status: { phase: "Running", containerStatuses: [{ name: "web", state: { running: {} } }] },
});

export function podJson(fleet: Fleet, volume: number, version = FIRST_VERSION): string {
  return podTemplate({
    name: `web-${volume.toString(36).padStart(5, "0")}`,
    namespace: namespaceOf(volume),
    uid: uidOf(volume, 33),
    version: String(version),
    node: nodeOf(fleet, volume),
    claim: claimName(volume),
  });
}

const claimTemplate = compile({
  metadata: {
    name: hole("name"),
    namespace: hole("namespace"),
    uid: hole("uid"),
    resourceVersion: String(FIRST_VERSION),
  },
  spec: { volumeName: hole("volume"), accessModes: ["ReadWriteOnce"], storageClassName: "fast" },
  status: { phase: "Bound", capacity: { storage: "10Gi" } },
});

export function claimJson(volume: number): string {
  return claimTemplate({
    name: claimName(volume),
    namespace: namespaceOf(volume),
    uid: uidOf(volume, 34),
    volume: volumeName(volume),
  });
}

const volumeTemplate = compile({
  metadata: { name: hole("name"), uid: hole("uid"), resourceVersion: String(FIRST_VERSION) },
  spec: {
    capacity: { storage: "10Gi" },
    accessModes: ["ReadWriteOnce"],
    storageClassName: "fast",
    csi: { driver: DRIVER, volumeHandle: hole("handle"), fsType: "ext4" },
    claimRef: { namespace: hole("namespace"), name: hole("claim"), uid: hole("claimUid") },
  },
  status: { phase: "Bound" },
});

export function volumeJson(volume: number): string {
  return volumeTemplate({
    name: volumeName(volume),
    uid: uidOf(volume, 35),
    handle: handleOf(volume),
    namespace: namespaceOf(volume),
    claim: claimName(volume),
    claimUid: uidOf(volume, 34),
  });
}

const attachmentTemplate = compile({
  metadata: {
    name: hole("name"),
    uid: hole("uid"),
    resourceVersion: String(FIRST_VERSION),
    creationTimestamp: "2026-01-02T03:04:05Z",
    finalizers: [`external-attacher/${DRIVER.replaceAll(".", "-")}`],
    annotations: { "csi.alpha.kubernetes.io/node-id": hole("node") },
  },
  spec: { attacher: DRIVER, source: { persistentVolumeName: hole("volume") }, nodeName: hole("node") },
  status: { attached: true },
} satisfies VolumeAttachment);

export function attachmentJson(fleet: Fleet, volume: number): string {
  return attachmentTemplate({
    name: attachmentName(fleet, volume),
    uid: uidOf(volume, 36),
    node: nodeOf(fleet, volume),
    volume: volumeName(volume),
  });
}

/** What `status.volumesAttached` lists of the volumes that were there from the beginning. */
export function attachedList(fleet: Fleet, node: number): { name: string; devicePath: string }[] {
  const list: { name: string; devicePath: string }[] = [];
  for (let volume = node; volume < fleet.attached; volume += fleet.nodes)
    list.push({ name: csiVolumeName({ driver: DRIVER, volumeHandle: handleOf(volume) }), devicePath: "" });
  return list;
}

export interface NodeChange {
  readonly volumesAttached: readonly { name: string; devicePath: string }[];
  readonly version: number;
}

export function nodeJson(fleet: Fleet, node: number, change?: NodeChange): string {
  const first = attachedList(fleet, node);
  return JSON.stringify({
    metadata: {
      name: nodeName(node),
      uid: uidOf(node, 37),
      resourceVersion: String(change?.version ?? FIRST_VERSION),
      annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
    },
    spec: {},
    status: {
      conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
      volumesInUse: first.map(({ name }) => name),
      volumesAttached: change?.volumesAttached ?? first,
    },
  });
}
