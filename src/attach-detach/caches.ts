import { csiDrivers, type CSIDriver } from "../kube/api/csi-driver.ts";
import { nodes, trimNode, type Node } from "../kube/api/node.ts";
import {
  persistentVolumeClaims,
  trimPersistentVolumeClaim,
  type PersistentVolumeClaim,
} from "../kube/api/persistent-volume-claim.ts";
import {
  persistentVolumes,
  trimPersistentVolume,
  type PersistentVolume,
} from "../kube/api/persistent-volume.ts";
import { pods, trimPod, type Pod } from "../kube/api/pod.ts";
import {
  trimVolumeAttachment,
  volumeAttachments,
  type VolumeAttachment,
} from "../kube/api/volume-attachment.ts";
import { createInformer, type Informer, type InformerDeps } from "../kube/informer/informer.ts";
import { together } from "../kube/informer/together.ts";
import { HANDLE_ANNOTATION } from "../volumes/names.ts";
import { claimKeysOf } from "../volumes/resolve.ts";

/** What the controller sees of the cluster, cluster-wide and trimmed to what it reads. */
export interface Caches {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly attachments: Informer<VolumeAttachment>;
  readonly drivers: Informer<CSIDriver>;
  run(signal: AbortSignal): Promise<void>;
  whenSynced(signal: AbortSignal): Promise<void>;
}

/** Pods by the claims they use: upstream's index, under upstream's name. */
export const POD_CLAIM_INDEX = "pod-pvc-index";

/** CSINodes, which upstream also waits for, tell this controller nothing since 1.37: not listing them saves a watch. */
export function createCaches(deps: InformerDeps): Caches {
  const caches = {
    pods: createInformer(deps, {
      resource: pods,
      trim: trimPod,
      indexes: { [POD_CLAIM_INDEX]: claimKeysOf },
    }),
    nodes: createInformer(deps, { resource: nodes, trim: trimNode }),
    claims: createInformer(deps, { resource: persistentVolumeClaims, trim: trimPersistentVolumeClaim }),
    volumes: createInformer(deps, { resource: persistentVolumes, trim: trimPersistentVolume }),
    attachments: createInformer(deps, { resource: volumeAttachments, trim: trimAttachment }),
    drivers: createInformer(deps, { resource: csiDrivers }),
  };
  return {
    ...caches,
    ...together(Object.values(caches)),
  };
}

/**
 * Without the marks of the attacher, which this controller does not write: 110 bytes of 670. The one it reads is the handle
 * that was recorded, for the day on which the PersistentVolume is gone or is another disk.
 */
function trimAttachment(attachment: VolumeAttachment): VolumeAttachment {
  const { metadata, spec, status } = trimVolumeAttachment(attachment);
  const { name = "", uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const kept = { name, uid, resourceVersion, creationTimestamp };
  const marked = deletionTimestamp ? { ...kept, deletionTimestamp } : kept;
  const handle = metadata.annotations?.[HANDLE_ANNOTATION];
  if (handle === undefined) return { metadata: marked, spec, status } as VolumeAttachment;
  const annotations = { [HANDLE_ANNOTATION]: handle };
  return { metadata: { ...marked, annotations }, spec, status } as VolumeAttachment;
}
