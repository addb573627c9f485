import type { KubeEvent } from "../kube/api/event.ts";
import type { Node } from "../kube/api/node.ts";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { CSIDriver } from "../kube/api/csi-driver.ts";
import type { CSINode } from "../kube/api/csi-node.ts";
import type { KubeObject } from "../kube/object.ts";
import { volumeAttachmentName } from "../volumes/names.ts";
import { NO_OBJECTS, type ClusterObjects, type MooringWait } from "./objects.ts";

/*
 * Builders of objects with defaults: pod shop/web on node-a with claim shop/data, bound to pv-1, attached and in use.
 * Tests name only what is wrong.
 */

export const NOW_MS = Date.parse("2026-03-01T12:00:00Z");
export const DRIVER = "csi.example.com";
export const UNIQUE = `kubernetes.io/csi/${DRIVER}^vol-1`;

/** The moment that many seconds ago. */
export function ago(seconds: number): string {
  return new Date(NOW_MS - seconds * 1_000).toISOString().replace(".000Z", "Z");
}

export type Fields = Readonly<Record<string, unknown>>;

interface Parts {
  readonly metadata?: Fields;
  readonly spec?: Fields;
  readonly status?: Fields;
}

function object<T>(metadata: Fields, spec: Fields, status: Fields, parts: Parts): T {
  return {
    metadata: { creationTimestamp: ago(600), ...metadata, ...parts.metadata },
    spec: { ...spec, ...parts.spec },
    status: { ...status, ...parts.status },
  } as T;
}

/** Waiting for its volume; `running` for one that has it. */
export function pod(name = "web", { claim = "data", ...parts }: Parts & { claim?: string } = {}): Pod {
  return object<Pod>(
    { name, namespace: "shop", uid: `uid-${name}`, creationTimestamp: ago(240) },
    {
      nodeName: "node-a",
      containers: [{ name: "app", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: claim } }],
    },
    { phase: "Pending" },
    parts,
  );
}

export function runningPod(name = "web", parts: Parts & { claim?: string } = {}): Pod {
  const containerStatuses = [{ name: "app", state: { running: {} } }];
  return pod(name, { ...parts, status: { phase: "Running", containerStatuses, ...parts.status } });
}

export function claim(name = "data", parts: Parts = {}): PersistentVolumeClaim {
  return object<PersistentVolumeClaim>(
    { name, namespace: "shop", uid: `uid-${name}` },
    {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "fast",
      volumeName: "pv-1",
      resources: { requests: { storage: "1Gi" } },
    },
    { phase: "Bound", capacity: { storage: "1Gi" } },
    parts,
  );
}

export function pendingClaim(parts: Parts = {}): PersistentVolumeClaim {
  return claim("data", {
    ...parts,
    spec: { volumeName: undefined, ...parts.spec },
    status: { phase: "Pending", ...parts.status },
  });
}

export function volume(name = "pv-1", parts: Parts = {}): PersistentVolume {
  return object<PersistentVolume>(
    { name },
    {
      accessModes: ["ReadWriteOnce"],
      claimRef: { namespace: "shop", name: "data", uid: "uid-data" },
      persistentVolumeReclaimPolicy: "Delete",
      csi: { driver: DRIVER, volumeHandle: "vol-1" },
    },
    { phase: "Bound" },
    parts,
  );
}

/** As a controller makes it; see `foreign` for one that somebody else made. */
export function attachment(node = "node-a", parts: Parts = {}): VolumeAttachment {
  return object<VolumeAttachment>(
    {
      name: volumeAttachmentName({ driver: DRIVER, volumeHandle: "vol-1" }, node),
      creationTimestamp: ago(180),
      finalizers: ["external-attacher/csi-example-com"],
    },
    { attacher: DRIVER, nodeName: node, source: { persistentVolumeName: "pv-1" } },
    { attached: true },
    parts,
  );
}

export function node(name = "node-a", { ready = "True", ...parts }: Parts & { ready?: string } = {}): Node {
  const reason = ready === "True" ? "KubeletReady" : "NodeStatusUnknown";
  const condition = {
    type: "Ready",
    status: ready,
    reason,
    lastTransitionTime: ago(ready === "True" ? 86_400 : 90),
  };
  return object<Node>(
    {
      name,
      labels: { "kubernetes.io/hostname": name },
      annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
    },
    {},
    { conditions: [condition], volumesAttached: [], volumesInUse: [] },
    parts,
  );
}

/** With pv-1 attached and in use. */
export function usingNode(name = "node-a", parts: Parts & { ready?: string } = {}): Node {
  const status = {
    volumesAttached: [{ name: UNIQUE, devicePath: "" }],
    volumesInUse: [UNIQUE],
    ...parts.status,
  };
  return node(name, { ...parts, status });
}

export function csiNode(
  name = "node-a",
  drivers: readonly Fields[] = [{ name: DRIVER, nodeID: name }],
): CSINode {
  return { metadata: { name }, spec: { drivers } } as unknown as CSINode;
}

export function storageClass(name = "fast", fields: Fields = {}): KubeObject {
  return { metadata: { name }, provisioner: DRIVER, volumeBindingMode: "Immediate", ...fields } as KubeObject;
}

export function event(of: readonly [kind: string, name: string], reason: string, message: string): KubeEvent {
  const [kind, name] = of;
  return {
    metadata: { name: `${name}.${reason}`, namespace: "shop" },
    involvedObject: { kind, name, namespace: "shop" },
    type: "Warning",
    reason,
    message,
    lastTimestamp: ago(20),
  };
}

export const podEvent = (reason: string, message: string) => event(["Pod", "web"], reason, message);
export const claimEvent = (reason: string, message: string) =>
  event(["PersistentVolumeClaim", "data"], reason, message);

const driverObject = { metadata: { name: DRIVER }, spec: { attachRequired: true } } as CSIDriver;

/** What Mooring says that pv-1 waits for on node-a, for 40 s. */
export function wait(
  parts: Partial<MooringWait> & Pick<MooringWait, "process" | "reason" | "message">,
): MooringWait {
  return {
    volume: UNIQUE,
    persistentVolume: parts.process === "node" ? "" : "pv-1",
    node: "node-a",
    pod: "",
    frozen: false,
    leaving: false,
    sinceMs: Date.parse(ago(40)),
    untilMs: undefined,
    ...parts,
  };
}

/** A healthy cluster with two nodes, of which the test replaces what is wrong. */
export function cluster(changes: Partial<ClusterObjects> = {}): ClusterObjects {
  return {
    ...NO_OBJECTS,
    pods: [pod()],
    claims: [claim()],
    volumes: [volume()],
    attachments: [attachment()],
    nodes: [usingNode(), node("node-b")],
    csiNodes: [csiNode(), csiNode("node-b")],
    csiDrivers: [driverObject],
    storageClasses: [storageClass()],
    ...changes,
  };
}
