import { csiDrivers, type CSIDriver } from "../../kube/api/csi-driver.ts";
import { csiNodes, type CSINode } from "../../kube/api/csi-node.ts";
import { nodes, type Node } from "../../kube/api/node.ts";
import {
  persistentVolumeClaims,
  type PersistentVolumeClaim,
} from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { pods, type Pod } from "../../kube/api/pod.ts";
import {
  trimVolumeAttachment,
  volumeAttachments,
  type VolumeAttachment,
} from "../../kube/api/volume-attachment.ts";
import { createInformer, type Informer, type InformerDeps } from "../../kube/informer/informer.ts";
import { together } from "../../kube/informer/together.ts";
import { volumeClassOf } from "../claims.ts";
import { storageClasses, type StorageClass } from "../kinds.ts";
import { driversOf } from "./csi-drivers.ts";
import { repellingTermsOf } from "./pod-affinity.ts";
import { claimUsesOf } from "./pod-claims.ts";

/** What the scheduler sees of the cluster. */
export interface SchedulerCaches {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly classes: Informer<StorageClass>;
  readonly csiNodes: Informer<CSINode>;
  readonly csiDrivers: Informer<CSIDriver>;
  readonly attachments: Informer<VolumeAttachment>;
  run(signal: AbortSignal): Promise<void>;
  whenSynced(signal: AbortSignal): Promise<void>;
  hasSynced(): boolean;
}

/** Pods and attachments by node. */
export const BY_NODE = "by-node";
/** Pods by the claims they use, volumes by the claim they name: `namespace/name`. */
export const BY_CLAIM = "by-claim";
/** Pods that keep others away, all under one value. */
export const REPELLING = "repelling";
/** Volumes that no claim has, by class. */
export const FREE_BY_CLASS = "free-by-class";
/** CSINodes by the drivers registered there. */
export const BY_DRIVER = "by-driver";

export function createSchedulerCaches(deps: InformerDeps): SchedulerCaches {
  const kinds = {
    pods: createInformer(deps, { resource: pods, indexes: POD_INDEXES }),
    nodes: createInformer(deps, { resource: nodes }),
    claims: createInformer(deps, { resource: persistentVolumeClaims }),
    volumes: createInformer(deps, { resource: persistentVolumes, indexes: VOLUME_INDEXES }),
    classes: createInformer(deps, { resource: storageClasses }),
    csiNodes: createInformer(deps, {
      resource: csiNodes,
      indexes: { [BY_DRIVER]: (csiNode: CSINode) => driversOf(csiNode).map(({ name }) => name) },
    }),
    csiDrivers: createInformer(deps, { resource: csiDrivers }),
    attachments: createInformer(deps, {
      resource: volumeAttachments,
      trim: trimVolumeAttachment,
      indexes: { [BY_NODE]: ({ spec }: VolumeAttachment) => [spec.nodeName] },
    }),
  };
  return {
    ...kinds,
    ...together(Object.values(kinds)),
  };
}

const POD_INDEXES = {
  [BY_NODE]: ({ spec }: Pod) => (spec?.nodeName ? [spec.nodeName] : []),
  [BY_CLAIM]: (pod: Pod) => claimUsesOf(pod).map(({ key }) => key as string),
  [REPELLING]: (pod: Pod) => (repellingTermsOf(pod).length > 0 ? [REPELLING] : []),
};

const VOLUME_INDEXES = {
  [BY_CLAIM]: ({ spec }: PersistentVolume) =>
    spec?.claimRef ? [`${spec.claimRef.namespace}/${spec.claimRef.name}`] : [],
  [FREE_BY_CLASS]: (volume: PersistentVolume) => (volume.spec?.claimRef ? [] : [volumeClassOf(volume)]),
};
