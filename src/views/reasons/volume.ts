import type { Words } from "./words.ts";

/** A PersistentVolume that is not there, not this claim's, or not for this node. */
export const VOLUME = {
  "volume-missing": {
    link: "volume",
    state: "unbound",
    waiting: "volume-missing",
    says: "PersistentVolume {pv}, which claim {claim} names as its own, does not exist",
    next: "nothing: without it nobody knows which disk it was",
    help: {
      command: "kubectl apply --filename VOLUME.yaml",
      note: "from a backup, with the same name and disk",
    },
  },
  "volume-not-bound-back": {
    link: "volume",
    state: "unbound",
    waiting: "volume-not-bound-back",
    says: "PersistentVolume {pv} is not bound back to claim {claim}: it names {other}",
    next: "the binder completes a fresh binding within seconds; if it stays, somebody edited the volume",
    help: {
      none: "changing claimRef by hand can give one disk to two claims",
      look: "kubectl get pv {pv} --output yaml",
    },
  },
  "volume-released": {
    link: "volume",
    state: "unbound",
    says: "PersistentVolume {pv} is Released: claim {other}, which had it, is gone, and the policy {policy} keeps it from others",
    next: "nothing: with Retain a person decides what becomes of the data",
    help: {
      none: "removing claimRef hands the old data to the next claim that fits; do that only if it is meant",
      look: "kubectl get pv {pv} --output yaml",
    },
  },
  "volume-not-reclaimed": {
    link: "volume",
    state: "unbound",
    confidence: "likely",
    says: "PersistentVolume {pv} is Released: claim {other}, which had it, is gone, and its provisioner has not yet deleted the disk, as the policy {policy} asks",
    next: "the provisioner of driver {driver} deletes disk and PersistentVolume as soon as it runs; it belongs to nobody else until then",
    help: {
      none: "nothing needs doing if the data may go; the policy Retain, set before the provisioner runs, would keep it",
      look: "kubectl describe pv {pv}",
    },
  },
  "volume-failed": {
    link: "volume",
    state: "unbound",
    says: "PersistentVolume {pv} is Failed: {message}",
    next: "its deletion is tried again with growing pauses",
    help: { none: "the storage behind it has to be looked at first", look: "kubectl describe pv {pv}" },
  },
  "volume-deleting": {
    link: "volume",
    state: "detaching",
    says: "PersistentVolume {pv} is being deleted and cannot go yet: {keepers}",
    next: "it goes once its claim is gone, it is attached nowhere and its disk is deleted or kept, as its policy says",
    help: {
      none: "removing a finalizer by hand leaves the disk behind, or takes it from a node that writes to it",
      look: "kubectl describe pv {pv}",
    },
  },
  "volume-deleted-in-use": {
    link: "volume",
    state: "waiting",
    says: "PersistentVolume {pv} was deleted while pod {pod} uses it through claim {claim}, and goes when that claim is deleted",
    next: "the pod goes on; once the claim is deleted the PersistentVolume goes, and {fate}",
    help: {
      command: 'kubectl patch pv {pv} --patch \'{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}\'',
      note: "a deletion cannot be taken back, but this keeps the disk and its data when the PersistentVolume goes",
    },
  },
  "volume-handle-shared": {
    link: "volume",
    state: "held",
    says: "PersistentVolume {pv} is not the only one for its disk {handle} of driver {driver}: so is {others}",
    next: "nothing: each is attached and deleted as if the disk were its own",
    help: {
      none: "one of them is a mistake: two claims write to one disk, and deleting one deletes the data of both",
      look: "kubectl get persistentvolumes --output custom-columns=NAME:.metadata.name,DISK:.spec.csi.volumeHandle",
    },
  },
  "volume-node-conflict": {
    link: "volume",
    state: "attaching",
    says: "PersistentVolume {pv} cannot be used on node {node}: it is only for nodes where {terms}",
    next: "nothing: the pod stays on its node",
    help: {
      command: "kubectl --namespace {ns} delete pod {podName}",
      note: "if a controller made it, the next one is placed where the volume is",
    },
  },
  untranslatable: {
    link: "volume",
    state: "attaching",
    waiting: "untranslatable",
    says: "volume {volume} cannot be expressed for its CSI driver: {message}",
    next: "nothing, until the field is right, which usually means a new PersistentVolume",
    help: { none: "the source of a PersistentVolume cannot be changed" },
  },
} as const satisfies Record<string, Words>;
