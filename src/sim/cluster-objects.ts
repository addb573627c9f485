import type {
  NodeCondition,
  NodeSystemInfo,
  PersistentVolumeSpec,
  Taint,
  Volume,
} from "kubernetes-types/core/v1.js";
import type { Node } from "../kube/api/node.ts";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { KubeObject, Resource } from "../kube/object.ts";

/** Objects with what a server demands of them filled in, so that tests name only what matters. */

export const DRIVER = "csi.example.com";
export const MANAGED_ANNOTATION = "volumes.kubernetes.io/controller-managed-attach-detach";
export const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";

export const namespaces: Resource = {
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
};

export const serviceAccounts: Resource = {
  group: "",
  version: "v1",
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  namespaced: true,
};

export type Ready = "True" | "False" | "Unknown" | "missing";

export interface NodeSketch {
  readonly managed?: boolean;
  readonly ready?: Ready;
  /** Of its Ready condition. */
  readonly reason?: string;
  readonly taints?: readonly Taint[];
  /** Names of volumes, in full. */
  readonly inUse?: readonly string[];
  readonly attached?: readonly string[];
  /** Which life of the machine it is; not said unless given. */
  readonly bootId?: string;
}

export function nodeObject(name: string, sketch: NodeSketch = {}): Node {
  const { managed = true, ready = "True", reason, taints = [], inUse = [], attached = [], bootId } = sketch;
  return {
    metadata: { name, ...(managed && { annotations: { [MANAGED_ANNOTATION]: "true" } }) },
    ...(taints.length > 0 && { spec: { taints: [...taints] } }),
    status: {
      conditions: readyConditions(ready, reason),
      ...(inUse.length > 0 && { volumesInUse: [...inUse] }),
      ...(attached.length > 0 && {
        volumesAttached: attached.map((volume) => ({ name: volume, devicePath: "" })),
      }),
      ...(bootId !== undefined && { nodeInfo: { bootID: bootId } as NodeSystemInfo }),
    },
  };
}

export function readyConditions(ready: Ready, reason?: string): NodeCondition[] {
  return ready === "missing"
    ? [{ type: "MemoryPressure", status: "False" }]
    : [{ type: "Ready", status: ready, ...(reason !== undefined && { reason }) }];
}

export function podObject(
  { name, namespace }: { name: string; namespace: string },
  { on, volumes }: { on?: string | undefined; volumes: readonly Volume[] },
): Pod {
  return {
    metadata: { name, namespace },
    spec: {
      containers: [{ name: "app", image: "example/app" }],
      volumes: [...volumes],
      ...(on !== undefined && { nodeName: on }),
    },
  };
}

export function claimObject(
  { name, namespace }: { name: string; namespace: string },
  { volumeName, owner }: { volumeName?: string | undefined; owner?: KubeObject | undefined } = {},
): PersistentVolumeClaim {
  const { name: ownerName = "", uid = "" } = owner?.metadata ?? {};
  const reference = { apiVersion: "v1", kind: "Pod", name: ownerName, uid, controller: true };
  return {
    metadata: { name, namespace, ...(owner && { ownerReferences: [reference] }) },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "",
      resources: { requests: { storage: "1Gi" } },
      ...(volumeName !== undefined && { volumeName }),
    },
  };
}

export function volumeObject(
  name: string,
  {
    source,
    modes,
    claim,
    labels,
  }: {
    source: Partial<PersistentVolumeSpec>;
    modes: readonly string[];
    claim?: PersistentVolumeClaim | undefined;
    labels?: Readonly<Record<string, string>> | undefined;
  },
): PersistentVolume {
  const { name: claimName = "", namespace = "", uid = "" } = claim?.metadata ?? {};
  return {
    metadata: { name, ...(labels && { labels: { ...labels } }) },
    spec: {
      accessModes: [...modes],
      capacity: { storage: "1Gi" },
      ...source,
      ...(claim && { claimRef: { kind: "PersistentVolumeClaim", name: claimName, namespace, uid } }),
    },
  };
}
