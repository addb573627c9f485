import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { csiNodes, type CSINode } from "../kube/api/csi-node.ts";
import {
  trimVolumeAttachment,
  volumeAttachments,
  type VolumeAttachment,
} from "../kube/api/volume-attachment.ts";
import { createInformer, type Informer, type InformerDeps } from "../kube/informer/informer.ts";
import { together } from "../kube/informer/together.ts";
import { trimBookkeeping } from "../kube/informer/trim.ts";
import { handleOfVolume, ownHandleOf, volumeNameOf } from "./source.ts";

/** What the attachers of a process see of the cluster; one set, however many drivers it serves. */
export interface AttacherCaches {
  readonly attachments: Informer<VolumeAttachment>;
  readonly volumes: Informer<PersistentVolume>;
  readonly nodes: Informer<CSINode>;
  run(signal: AbortSignal): Promise<void>;
  /** All three: a node that is merely not listed yet would be reported as unknown. */
  whenSynced(signal: AbortSignal): Promise<void>;
  hasSynced(): boolean;
}

export const BY_VOLUME = "by-volume";
export const BY_NODE = "by-node";
/**
 * Attachments by the driver's own name of their volume, as far as they say it themselves; PersistentVolumes by it too, for
 * those that do not: other attachers record nothing.
 */
export const BY_HANDLE = "by-handle";

export function createAttacherCaches(
  deps: InformerDeps,
  { resyncMs }: { readonly resyncMs?: number } = {},
): AttacherCaches {
  const attachments = createInformer(deps, {
    resource: volumeAttachments,
    trim: trimVolumeAttachment,
    resyncMs,
    indexes: {
      [BY_VOLUME]: (attachment) => [volumeNameOf(attachment)].filter((name) => name !== ""),
      [BY_NODE]: ({ spec }) => [spec.nodeName],
      [BY_HANDLE]: (attachment) => [ownHandleOf(attachment)].filter((handle) => handle !== ""),
    },
  });
  const volumes = createInformer(deps, {
    resource: persistentVolumes,
    trim: trimVolume,
    resyncMs,
    indexes: { [BY_HANDLE]: (volume) => [handleOfVolume(volume)].filter((handle) => handle !== "") },
  });
  const nodes = createInformer(deps, { resource: csiNodes, trim: trimNode, resyncMs });
  return {
    attachments,
    volumes,
    nodes,
    ...together([attachments, volumes, nodes]),
  };
}

/** Without status, claim, capacity and affinity, which are a third of it and which no driver is told. */
function trimVolume(volume: PersistentVolume): PersistentVolume {
  const { metadata, spec = {} } = trimBookkeeping(volume);
  const { capacity: _, nodeAffinity: __, ...kept } = spec;
  return { metadata, spec: kept };
}

function trimNode(node: CSINode): CSINode {
  const { metadata, spec } = node;
  const { name, uid, resourceVersion } = metadata;
  return { metadata: { name, uid, resourceVersion }, spec } as CSINode;
}
