import type { Words } from "./words.ts";

const DESCRIBE = "kubectl describe volumeattachment {attachment}";

/** Attaching to the right node, and detaching from where nobody wants it. */
export const ATTACHMENT = {
  "attachment-not-created": {
    link: "attachment",
    state: "attaching",
    says: "no VolumeAttachment asks for PersistentVolume {pv} on node {node}: the attach/detach controller is not running, or it is stuck",
    next: "a running controller creates it within seconds",
    help: {
      command: "kubectl --namespace kube-system get leases,pods",
      note: "is kube-controller-manager or mooring controller running?",
    },
  },
  "controller-waits": {
    link: "attachment",
    state: "attaching",
    says: "Mooring's {process} waits ({waiting}): {message}",
    next: "{then}",
    help: { none: "docs/reference/waiting says what helps for {waiting}" },
  },
  "controller-frozen": {
    link: "attachment",
    state: "attaching",
    says: "Mooring's controller has frozen the volume ({waiting}): {message}",
    next: "nothing, until somebody looks: a mistake could let a second writer in",
    help: { none: "docs/reference/waiting says what helps for {waiting}" },
  },
  "attachment-mismatch": {
    link: "attachment",
    state: "attaching",
    waiting: "attachment-mismatch",
    says: "VolumeAttachment {attachment} has the name of PersistentVolume {pv} on node {node}, but it is for {what}",
    next: "nothing: neither is attached or detached on its word until it is gone",
    help: {
      none: "somebody has to find out what is on the node, and delete it if it is wrong",
      look: DESCRIBE,
    },
  },
  "attached-twice": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} may be on one node only, and VolumeAttachment {attachment} has its disk on node {holder} as well as on node {node}",
    next: "a controller detaches it where no node uses it; what somebody else attached stays until they delete it",
    help: {
      none: "end what uses the disk on one of the two nodes: two that write to it destroy the file system",
      look: DESCRIBE,
    },
  },
  "foreign-attachment": {
    link: "attachment",
    state: "held",
    waiting: "foreign-attachment",
    says: "VolumeAttachment {attachment}, which no attach/detach controller made, has PersistentVolume {pv} on node {node}",
    next: "{then}",
    help: {
      none: "deleting it makes the driver take the disk off {node}, also from under a pod: only once nothing there uses it",
      look: DESCRIBE,
    },
  },
  "attachment-deleting": {
    link: "attachment",
    state: "attaching",
    waiting: "driver-detaching",
    says: "PersistentVolume {pv} is still being detached from node {node} (finalizers {finalizers}), and can only then be attached there again",
    next: "it is attached again as soon as VolumeAttachment {attachment} is gone",
    help: {
      none: "the finalizer protects the data; look at the attacher of {driver} if it lasts",
      look: DESCRIBE,
    },
  },
  "attach-exhausted": {
    link: "attachment",
    state: "attaching",
    waiting: "backoff",
    says: "driver {driver} has no room for PersistentVolume {pv} on node {node}: {message}",
    next: "it is tried again with growing pauses; a volume detached from {node} makes room",
    help: { command: "mooring why node/{node}", note: "shows which volumes nobody needs there any more" },
  },
  "attach-denied": {
    link: "attachment",
    state: "attaching",
    waiting: "backoff",
    says: "driver {driver} is not allowed to attach PersistentVolume {pv} to node {node}: {message}",
    next: "it is tried again with growing pauses, and fails until the driver has the right",
    help: { none: "the credentials of the driver at its backend have to be put right", look: DESCRIBE },
  },
  "attach-failed": {
    link: "attachment",
    state: "attaching",
    waiting: "backoff",
    says: "driver {driver} cannot attach PersistentVolume {pv} to node {node}: {message}",
    next: "it is tried again with growing pauses",
    help: { none: "what the driver says has to be put right", look: DESCRIBE },
  },
  "attacher-missing": {
    link: "attachment",
    state: "attaching",
    waiting: "driver-attaching",
    says: "no attacher has taken up VolumeAttachment {attachment}: the external-attacher of driver {driver} is not running",
    next: "it is attached as soon as that attacher runs",
    help: { command: "kubectl get pods --all-namespaces | grep -i attacher" },
  },
  "driver-attaching": {
    link: "attachment",
    state: "attaching",
    waiting: "driver-attaching",
    says: "driver {driver} was asked to attach PersistentVolume {pv} to node {node} and has not answered",
    next: "it goes on as soon as the driver answers",
    help: { none: "an attach under way may still succeed; nothing should be deleted", look: DESCRIBE },
  },
  "node-status": {
    link: "attachment",
    state: "attaching",
    waiting: "node-status",
    says: "PersistentVolume {pv} is attached to node {node}, but the node's volumesAttached does not say so, and its kubelet waits for that",
    next: "the attach/detach controller writes it within seconds where it runs",
    help: {
      command: "kubectl --namespace kube-system get leases,pods",
      note: "is kube-controller-manager or mooring controller running?",
    },
  },
  "attachment-orphaned": {
    link: "attachment",
    state: "detaching",
    says: "VolumeAttachment {attachment} keeps a volume on node {node} that nobody wants: PersistentVolume {pv} {orphanhood}",
    next: "the attach/detach controller detaches it once the node has unmounted it; upstream's forgets it if its volume is gone",
    help: {
      command: "kubectl delete volumeattachment {attachment}",
      note: "asks the driver to detach it; it is not in volumesInUse of {node}",
    },
  },
  "attachment-orphaned-unsure": {
    link: "attachment",
    state: "detaching",
    says: "VolumeAttachment {attachment} keeps a volume on node {node} that nobody wants: PersistentVolume {pv} {orphanhood}",
    next: "the attach/detach controller detaches it 6 min after nobody wants it, since node {node} cannot say that it is unmounted",
    help: {
      none: "nobody knows whether it is still mounted on {node}: make sure that the machine is off before deleting anything",
      look: DESCRIBE,
    },
  },
  "detach-failed": {
    link: "attachment",
    state: "detaching",
    waiting: "backoff",
    says: "driver {driver} cannot detach PersistentVolume {pv} from node {node}: {message}",
    next: "it is tried again with growing pauses",
    help: {
      none: "the finalizer protects the data: what the driver says has to be put right",
      look: DESCRIBE,
    },
  },
  "driver-detaching": {
    link: "attachment",
    state: "detaching",
    waiting: "driver-detaching",
    says: "VolumeAttachment {attachment} is deleted but driver {driver} has not let go of it (finalizers {finalizers})",
    next: "it goes as soon as the attacher of {driver} has detached the volume from node {node}",
    help: {
      none: "removing the finalizer by hand lets a second node write while the first may still",
      look: DESCRIBE,
    },
  },
  "still-mounted": {
    link: "mount",
    state: "detaching",
    waiting: "still-mounted",
    says: "node {node} still has volume {pv} in use, though no pod there wants it",
    next: "{then}",
    help: {
      none: "its kubelet has to unmount it; detaching a mounted volume loses writes",
      look: "kubectl describe node {node}",
    },
  },
} as const satisfies Record<string, Words>;
