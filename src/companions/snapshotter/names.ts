/** Words of the snapshot controllers. */
const PREFIX = "snapshot.storage.kubernetes.io";

/** On a snapshot: its content is bound to it. */
export const SNAPSHOT_BOUND_FINALIZER = `${PREFIX}/volumesnapshot-bound-protection`;
/** On a snapshot: a volume may be in the making from it. */
export const SNAPSHOT_SOURCE_FINALIZER = `${PREFIX}/volumesnapshot-as-source-protection`;
/** On a content: its driver has, or may have, the snapshot. */
export const CONTENT_FINALIZER = `${PREFIX}/volumesnapshotcontent-bound-protection`;
/** On a claim: a snapshot of it is being cut. */
export const CLAIM_SOURCE_FINALIZER = `${PREFIX}/pvc-as-source-protection`;

/** On a content: the driver was asked, and what it did is not known yet. */
export const BEING_CREATED = `${PREFIX}/volumesnapshot-being-created`;
/** On a content: its snapshot is gone or going, so it may follow. */
export const BEING_DELETED = `${PREFIX}/volumesnapshot-being-deleted`;
export const DELETION_SECRET_NAME = `${PREFIX}/deletion-secret-name`;
export const DELETION_SECRET_NAMESPACE = `${PREFIX}/deletion-secret-namespace`;
export const DEFAULT_SNAPSHOT_CLASS = `${PREFIX}/is-default-class`;

/** In the parameters of a class. */
export const SNAPSHOTTER_SECRET = "csi.storage.k8s.io/snapshotter-secret";
export const RESERVED_PREFIX = "csi.storage.k8s.io/";
