import type { CSINode } from "../../kube/api/csi-node.ts";
import type { Node } from "../../kube/api/node.ts";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import type { ObjectKey } from "../../kube/object.ts";
import type { StorageClass } from "../kinds.ts";

/** What a decision about one pod reads; a table in a test, the caches otherwise. */
export interface ClusterView {
  readonly nodes: readonly NodeView[];
  claim(key: ObjectKey): PersistentVolumeClaim | undefined;
  volume(name: string): PersistentVolume | undefined;
  storageClass(name: string): StorageClass | undefined;
  /** Volumes that the claim might have: those promised to it and those that are free in its class. */
  candidates(claim: PersistentVolumeClaim): readonly PersistentVolume[];
  /** Whether anybody knows a CSI driver of this name, registered on some node or not. */
  isCsiDriver(name: string): boolean;
  /** Pods on a node, or on their way to one, that use the claim. */
  podsUsing(claim: ObjectKey): readonly Pod[];
  /** Pods on a node, or on their way to one, that keep others away. */
  repelling(): readonly PlacedPod[];
}

/** A pod on a node, or on its way there. */
export interface PlacedPod {
  readonly pod: Pod;
  readonly nodeName: string;
}

export interface NodeView {
  readonly name: string;
  readonly node: Node;
  readonly csiNode: CSINode | undefined;
  /** On it or on their way to it; those that have ended need nothing and are left out. */
  readonly pods: readonly Pod[];
  /** Of pods on their way: volumes promised to their claims, which the objects may not say yet. */
  readonly planned: ReadonlyMap<Pod, readonly PersistentVolume[]>;
  /** What is attached to it, or being attached or detached. */
  readonly attachments: readonly VolumeAttachment[];
}

/** Why a node does not take a pod. Texts are upstream's where upstream has them: people and their alerts know those. */
export interface Refusal {
  readonly text: string;
  /** What may change the verdict, besides the pod and its claims. */
  readonly until: readonly Blocker[];
}

/**
 * What a pod waits for that is not its own, and not a claim of its own. `node`: a node comes or changes. `room`: a pod or
 * an attachment goes. `pod`: a pod is placed. `volume`: a volume comes or changes. `class`: a storage class does.
 */
export type Blocker = "node" | "room" | "pod" | "volume" | "class";

export function podName({ metadata }: Pod): string {
  return metadata.name ?? "";
}

export function isSamePod(a: Pod, b: Pod): boolean {
  return a.metadata.namespace === b.metadata.namespace && a.metadata.name === b.metadata.name;
}
