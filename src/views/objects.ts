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
  /** What could not be read. Of a kind named here, an object that is absent may well exist. */
  readonly unread: readonly Unread[];
  /** Answers of Mooring's `/debug/volumes` and `/debug/attachments`, where it runs and was asked. */
  readonly waits: readonly MooringWait[];
  /** What whoever reads the answer should know about the reading itself: who did not answer. */
  readonly notes: readonly string[];
}

export type ObjectKind = Exclude<keyof ClusterObjects, "unread" | "waits" | "notes">;

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
  readonly reason: string;
  readonly frozen: boolean;
  /** Of a node: the volume is on its way out of the pod, or off the node. */
  readonly leaving: boolean;
  readonly message: string;
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
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
  unread: [],
  waits: [],
  notes: [],
};
