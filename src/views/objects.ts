import type { CSIDriver } from "../kube/api/csi-driver.ts";
import type { CSINode } from "../kube/api/csi-node.ts";
import type { KubeEvent } from "../kube/api/event.ts";
import type { Node } from "../kube/api/node.ts";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { KubeObject } from "../kube/object.ts";

/** The objects of one cluster at one moment: all that a view knows. */
export interface ClusterObjects {
  readonly pods: readonly Pod[];
  readonly claims: readonly PersistentVolumeClaim[];
  readonly volumes: readonly PersistentVolume[];
  readonly attachments: readonly VolumeAttachment[];
  readonly nodes: readonly Node[];
  readonly csiNodes: readonly CSINode[];
  readonly csiDrivers: readonly CSIDriver[];
  readonly storageClasses: readonly KubeObject[];
  readonly events: readonly KubeEvent[];
  readonly statefulSets: readonly KubeObject[];
  readonly deployments: readonly KubeObject[];
  readonly replicaSets: readonly KubeObject[];
  readonly resourceQuotas: readonly KubeObject[];
  readonly snapshots: readonly KubeObject[];
  readonly snapshotClasses: readonly KubeObject[];
  readonly snapshotContents: readonly KubeObject[];
  /** Kinds that this question did not ask for: nothing is known of them, and nobody need be told. */
  readonly notAsked: readonly ObjectKind[];
  /** Optional kinds that the server does not have, such as snapshots without their CRDs: there are no such objects. */
  readonly notServed: readonly ObjectKind[];
  /** What could not be read. Of a kind named here, an object that is absent may well exist. */
  readonly unread: readonly Unread[];
  /** Answers of Mooring's `/debug/volumes` and `/debug/attachments`, where it runs and was asked. */
  readonly waits: readonly MooringWait[];
  /** What each node of Mooring that was asked says to have mounted. */
  readonly nodePages: readonly NodePage[];
  /** What whoever reads the answer should know about the reading itself: who did not answer. */
  readonly notes: readonly string[];
}

export type ObjectKind = Exclude<
  keyof ClusterObjects,
  "unread" | "waits" | "nodePages" | "notes" | "notAsked" | "notServed"
>;

/** What a volume's way to its pod is made of: every explanation looks at these. */
export const BASE_KINDS = [
  "pods",
  "claims",
  "volumes",
  "attachments",
  "nodes",
  "csiNodes",
  "csiDrivers",
  "storageClasses",
  "events",
] as const satisfies readonly ObjectKind[];

/** What only some questions need, and what a server may not have at all. */
export const OPTIONAL_KINDS = [
  "statefulSets",
  "deployments",
  "replicaSets",
  "resourceQuotas",
  "snapshots",
  "snapshotClasses",
  "snapshotContents",
] as const satisfies readonly ObjectKind[];

export const OBJECT_KINDS: readonly ObjectKind[] = [...BASE_KINDS, ...OPTIONAL_KINDS];

export interface Unread {
  readonly kind: ObjectKind;
  /** `list volumeattachments.storage.k8s.io`: the right that is missing. */
  readonly right: string;
  readonly why: string;
  /** The one namespace that could be read all the same. */
  readonly readNamespace?: string;
}

/** What Mooring itself says that a volume waits for; the names are those of docs/reference/waiting. */
export interface MooringWait {
  readonly process: "controller" | "attacher" | "node";
  /** The unique name of the volume, of the PersistentVolume or of the VolumeAttachment, as far as they are known. */
  readonly volume: string;
  readonly persistentVolume: string;
  readonly node: string;
  /**
   * `namespace/name`. Of a controller: the pod whose volume, named as the pod names it, could not be followed. Of a
   * node: the pod that waits for the volume, or leaves it.
   */
  readonly pod: string;
  /** Of a node, which no longer knows the name of a pod whose containers have stopped. */
  readonly podUid?: string;
  readonly reason: string;
  readonly frozen: boolean;
  /** Of a node: the volume is on its way out of the pod, or off the node. */
  readonly leaving: boolean;
  readonly message: string;
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
}

/** `/debug/volumes` of one node: the mounts it knows of. */
export interface NodePage {
  readonly node: string;
  /** False until it has read its disk and pods: before that, what is absent proves nothing. */
  readonly synced: boolean;
  readonly mounts: readonly {
    readonly volume: string;
    readonly podUid: string;
    readonly state: string;
  }[];
}

export const NO_OBJECTS: ClusterObjects = {
  pods: [],
  claims: [],
  volumes: [],
  attachments: [],
  nodes: [],
  csiNodes: [],
  csiDrivers: [],
  storageClasses: [],
  events: [],
  statefulSets: [],
  deployments: [],
  replicaSets: [],
  resourceQuotas: [],
  snapshots: [],
  snapshotClasses: [],
  snapshotContents: [],
  notAsked: [],
  notServed: [],
  unread: [],
  waits: [],
  nodePages: [],
  notes: [],
};
