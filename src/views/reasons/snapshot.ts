import type { Words } from "./words.ts";

const DESCRIBE = "kubectl --namespace {ns} describe volumesnapshot {snapshotName}";
const CONTENT = "kubectl describe volumesnapshotcontent {content}";

/** A VolumeSnapshot that is not ready to use, or does not go. */
export const SNAPSHOT = {
  "snapshot-source-missing": {
    link: "claim",
    state: "waiting",
    says: "claim {claim}, of which VolumeSnapshot {snapshot} is to be taken, does not exist",
    next: "it is taken as soon as the claim is there and bound; nobody else creates it",
    help: {
      none: "the source of a VolumeSnapshot cannot be changed: make one that names an existing claim",
      look: "kubectl --namespace {ns} get pvc",
    },
  },
  "snapshot-source-unbound": {
    link: "claim",
    state: "waiting",
    says: "claim {claim}, of which VolumeSnapshot {snapshot} is to be taken, has no volume yet ({phase})",
    next: "it is taken as soon as the claim is bound",
    help: { command: "mooring why pvc/{claimName} --namespace {ns}" },
  },
  "snapshot-source-not-csi": {
    link: "volume",
    state: "waiting",
    says: "PersistentVolume {pv} of claim {claim} is not served by a CSI driver, so no VolumeSnapshot of it can be taken",
    next: "nothing: only volumes of CSI drivers have snapshots",
    help: { none: "the data has to be copied to a volume of a CSI driver", look: "kubectl describe pv {pv}" },
  },
  "snapshot-class-missing": {
    link: "class",
    state: "waiting",
    says: "VolumeSnapshotClass {class}, which VolumeSnapshot {snapshot} asks for, does not exist ({others})",
    next: "the snapshot is taken up as soon as the class exists",
    help: { command: "kubectl get volumesnapshotclasses" },
  },
  "snapshot-class-no-default": {
    link: "class",
    state: "waiting",
    says: "VolumeSnapshot {snapshot} names no class, and no VolumeSnapshotClass is the default for driver {driver} ({others})",
    next: "the snapshot is taken up once a class of {driver} is the default",
    help: {
      command:
        "kubectl annotate volumesnapshotclass CLASS snapshot.storage.kubernetes.io/is-default-class=true",
      note: "every snapshot of {driver} without a class then uses it",
    },
  },
  "snapshot-class-wrong-driver": {
    link: "class",
    state: "waiting",
    says: "VolumeSnapshotClass {class} is of driver {classDriver}, but the volume of claim {claim} is of driver {driver}",
    next: "nothing: a driver can only take snapshots of its own volumes",
    help: {
      none: "make a VolumeSnapshot that names a class of {driver}",
      look: "kubectl get volumesnapshotclasses",
    },
  },
  "snapshot-content-missing": {
    link: "content",
    state: "waiting",
    says: "VolumeSnapshotContent {content}, which VolumeSnapshot {snapshot} names, does not exist",
    next: "nothing until it exists; it says which snapshot of the backend is meant",
    help: { none: "without it nobody knows which snapshot of the backend it was", look: DESCRIBE },
  },
  "snapshot-content-elsewhere": {
    link: "content",
    state: "waiting",
    says: "VolumeSnapshotContent {content} belongs to VolumeSnapshot {other}, not to {snapshot}",
    next: "nothing: a content has one snapshot",
    help: {
      none: "its volumeSnapshotRef has to name this snapshot, or the snapshot another content",
      look: CONTENT,
    },
  },
  "snapshot-controller-silent": {
    link: "snapshot",
    state: "waiting",
    confidence: "likely",
    says: "nobody has taken up VolumeSnapshot {snapshot}: the snapshot-controller is not running",
    next: "it is taken up as soon as the snapshot-controller runs",
    help: {
      command: "kubectl get pods --all-namespaces | grep -i snapshot",
      note: "the snapshot-controller is one for the cluster, apart from the drivers",
    },
  },
  "snapshotter-silent": {
    link: "content",
    state: "waiting",
    confidence: "likely",
    says: "driver {driver} has not taken up VolumeSnapshotContent {content}: its csi-snapshotter is not running, or the driver cannot take snapshots",
    next: "it is taken up as soon as the csi-snapshotter beside the driver runs",
    help: { command: "kubectl get pods --all-namespaces | grep -i snapshot" },
  },
  "snapshot-failed": {
    link: "content",
    state: "waiting",
    says: "VolumeSnapshot {snapshot} cannot be taken: {message}",
    next: "it is tried again with growing pauses",
    help: { none: "what the driver says has to be put right", look: DESCRIBE },
  },
  "snapshot-under-way": {
    link: "content",
    state: "waiting",
    says: "driver {driver} is still taking VolumeSnapshot {snapshot}",
    next: "it is ready as soon as the driver says so; a restore from it waits until then",
    help: { none: "nothing needs doing; large snapshots are copied for minutes to hours", look: CONTENT },
  },
  "snapshot-restoring": {
    link: "snapshot",
    state: "waiting",
    says: "VolumeSnapshot {snapshot} is being deleted, but claim {restored} is still being made from it",
    next: "it goes as soon as that claim has its volume, or is deleted",
    help: { command: "mooring why pvc/{restoredName} --namespace {ns}" },
  },
  "snapshot-deleting": {
    link: "snapshot",
    state: "waiting",
    says: "VolumeSnapshot {snapshot} is being deleted and waits for its finalizers ({finalizers}): {kept}",
    next: "{then}",
    help: {
      none: "removing the finalizers by hand leaves the snapshot in the backend, where nobody finds it again",
      look: DESCRIBE,
    },
  },
} as const satisfies Record<string, Words>;
