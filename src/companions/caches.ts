import { csiNodes, type CSINode } from "../kube/api/csi-node.ts";
import { nodes as nodeResource, type Node } from "../kube/api/node.ts";
import { persistentVolumeClaims, type PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import {
  trimVolumeAttachment,
  volumeAttachments,
  type VolumeAttachment,
} from "../kube/api/volume-attachment.ts";
import { createInformer, type Informer, type InformerDeps } from "../kube/informer/informer.ts";
import { together } from "../kube/informer/together.ts";
import { availableShelf } from "./binder/shelves.ts";
import { classKeyOf, isWaiting, sourceKeyOf } from "./claims.ts";
import {
  storageClasses,
  volumeSnapshotClasses,
  volumeSnapshotContents,
  volumeSnapshots,
  type StorageClass,
  type VolumeSnapshot,
  type VolumeSnapshotClass,
  type VolumeSnapshotContent,
} from "./kinds.ts";
import { createLatest, type Latest } from "./latest.ts";
import { SELECTED_NODE } from "./names.ts";

/** What the storage half sees of the cluster; one set for all four companions. */
export interface StorageCaches {
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly classes: Informer<StorageClass>;
  readonly attachments: Informer<VolumeAttachment>;
  readonly nodes: Informer<Node>;
  readonly csiNodes: Informer<CSINode>;
  readonly snapshots: Informer<VolumeSnapshot>;
  readonly contents: Informer<VolumeSnapshotContent>;
  readonly snapshotClasses: Informer<VolumeSnapshotClass>;
  /** Claims and volumes with our own writes in them, which every decision about them starts from. */
  readonly latest: {
    readonly claims: Latest<PersistentVolumeClaim>;
    readonly volumes: Latest<PersistentVolume>;
    readonly snapshots: Latest<VolumeSnapshot>;
    readonly contents: Latest<VolumeSnapshotContent>;
  };
  run(signal: AbortSignal): Promise<void>;
  whenSynced(signal: AbortSignal): Promise<void>;
  hasSynced(): boolean;
}

/** Claims by the volume they name. */
export const BY_VOLUME = "by-volume";
/** Claims without a volume by `classKeyOf`. */
export const WAITING_BY_CLASS = "waiting-by-class";
/** Claims without a volume by `sourceKeyOf`. */
export const WAITING_BY_SOURCE = "waiting-by-source";
/** Claims without a volume by the node chosen for them. */
export const WAITING_BY_NODE = "waiting-by-node";
/** Volumes by the claim they name, snapshots by the claim they are of: `namespace/name`. */
export const BY_CLAIM = "by-claim";
/** Volumes that anybody may have, by `availableShelf`. */
export const AVAILABLE = "available";
/** Snapshots by the content they name. */
export const BY_CONTENT = "by-content";

export function createStorageCaches(deps: InformerDeps): StorageCaches {
  const claims = createInformer(deps, { resource: persistentVolumeClaims, indexes: CLAIM_INDEXES });
  const volumes = createInformer(deps, { resource: persistentVolumes, indexes: VOLUME_INDEXES });
  const snapshots = createInformer(deps, { resource: volumeSnapshots, indexes: SNAPSHOT_INDEXES });
  const contents = createInformer(deps, { resource: volumeSnapshotContents });
  const attachments = createInformer(deps, {
    resource: volumeAttachments,
    trim: trimVolumeAttachment,
    indexes: { [BY_VOLUME]: ({ spec }: VolumeAttachment) => some(spec.source.persistentVolumeName) },
  });
  const kinds = {
    claims,
    volumes,
    snapshots,
    contents,
    attachments,
    classes: createInformer(deps, { resource: storageClasses }),
    nodes: createInformer(deps, { resource: nodeResource, trim: onlyLabels }),
    csiNodes: createInformer(deps, { resource: csiNodes }),
    snapshotClasses: createInformer(deps, { resource: volumeSnapshotClasses }),
  };
  return {
    ...kinds,
    latest: {
      claims: createLatest(claims),
      volumes: createLatest(volumes),
      snapshots: createLatest(snapshots),
      contents: createLatest(contents),
    },
    ...together(Object.values(kinds)),
  };
}

const CLAIM_INDEXES = {
  [BY_VOLUME]: ({ spec }: PersistentVolumeClaim) => some(spec?.volumeName),
  [WAITING_BY_CLASS]: (claim: PersistentVolumeClaim) => (isWaiting(claim) ? [classKeyOf(claim)] : []),
  [WAITING_BY_SOURCE]: (claim: PersistentVolumeClaim) => (isWaiting(claim) ? some(sourceKeyOf(claim)) : []),
  [WAITING_BY_NODE]: (claim: PersistentVolumeClaim) =>
    isWaiting(claim) ? some(claim.metadata.annotations?.[SELECTED_NODE]) : [],
};

const VOLUME_INDEXES = {
  [BY_CLAIM]: ({ spec }: PersistentVolume) =>
    spec?.claimRef ? [`${spec.claimRef.namespace}/${spec.claimRef.name}`] : [],
  [AVAILABLE]: (volume: PersistentVolume) => some(availableShelf(volume)),
};

const SNAPSHOT_INDEXES = {
  [BY_CLAIM]: ({ metadata, spec }: VolumeSnapshot) => {
    const claim = spec.source.persistentVolumeClaimName;
    return claim === undefined ? [] : [`${metadata.namespace}/${claim}`];
  },
  [BY_CONTENT]: ({ spec, status }: VolumeSnapshot) =>
    some(spec.source.volumeSnapshotContentName ?? status?.boundVolumeSnapshotContentName),
};

function some(value: string | undefined): readonly string[] {
  return value ? [value] : [];
}

/** A node's status changes every few seconds and says nothing about where storage is. */
function onlyLabels({ metadata }: Node): Node {
  const { name, uid, resourceVersion, labels } = metadata;
  return { metadata: { name, uid, resourceVersion, labels } } as Node;
}
