import type { Words } from "./words.ts";

const FENCE = "kubectl taint nodes {holder} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";

/** The node and its drivers, and other nodes that have the volume. */
export const NODE = {
  "node-missing": {
    link: "node",
    state: "attaching",
    waiting: "node-missing",
    says: "node {node}, which pod {pod} was given, does not exist",
    next: "the pod is deleted by the cluster within minutes, unless the node registers again",
    help: { command: "kubectl get nodes" },
  },
  "node-not-ready": {
    link: "node",
    state: "waiting",
    says: "node {node} is not ready ({condition}), so nothing on it is mounted or reported",
    next: "it goes on when the node's kubelet answers; its pods are evicted 5 min after it went away",
    help: {
      none: "only the machine or its kubelet can be repaired; deleting the pod does not free its volume",
      look: "kubectl describe node {node}",
    },
  },
  "node-not-managed": {
    link: "node",
    state: "attaching",
    waiting: "node-not-managed",
    says: "node {node} attaches for itself, so no controller creates a VolumeAttachment for it, and its kubelet has not",
    next: "the kubelet of the node has to attach the volume",
    help: {
      none: "its kubelet's setting enableControllerAttachDetach decides this",
      look: "kubectl describe node {node}",
    },
  },
  "csinode-missing": {
    link: "driver",
    state: "attaching",
    says: "node {node} has no CSINode: its kubelet has registered no CSI driver, so {driver} cannot serve it",
    next: "it goes on as soon as the driver's node plugin registers there",
    help: {
      command: "kubectl get pods --all-namespaces --field-selector spec.nodeName={node}",
      note: "is the node plugin of {driver} among them?",
    },
  },
  "driver-not-registered": {
    link: "driver",
    state: "attaching",
    says: "driver {driver} is not registered on node {node}, so its volumes can be neither attached nor mounted there",
    next: "it goes on as soon as the driver's node plugin registers there",
    help: {
      command: "kubectl get pods --all-namespaces --field-selector spec.nodeName={node}",
      note: "is the node plugin of {driver} among them?",
    },
  },
  "attach-limit": {
    link: "driver",
    state: "attaching",
    says: "node {node} has all {limit} volumes of driver {driver} that it may have",
    next: "it goes on as soon as one of them is detached",
    help: { command: "mooring why node/{node}", note: "shows which of them nobody needs any more" },
  },
  "held-by-foreign-attachment": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} may be on one node only, and VolumeAttachment {attachment}, which no attach/detach controller made, has it on node {holder}",
    next: "nothing: no controller deletes what it did not make; when {attachment} is gone, the volume comes to node {node}",
    help: {
      command: "kubectl delete volumeattachment {attachment}",
      note: "ONLY once nothing on {holder} uses the disk: the driver takes it off that node",
    },
  },
  "held-by-running-pod": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} may be on one node only, and pod {other} uses it on node {holder}",
    next: "it comes to node {node} after pod {other} has ended and the volume is detached from {holder}",
    help: {
      none: "two pods on two nodes would destroy the data; one of them has to end, and that is its owner's choice",
      look: "kubectl get pod --namespace {otherNs} {otherName} --output wide",
    },
  },
  "held-by-terminating-pod": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} may be on one node only, and pod {other}, which is ending, still uses it on node {holder}",
    next: "it is detached once its containers have stopped and it is unmounted; they are killed {killed}",
    help: {
      none: "forcing the deletion of {other} does not unmount the volume, and leaves a writer nobody sees",
      look: "kubectl --namespace {otherNs} describe pod {otherName}",
    },
  },
  "held-by-not-ready-node": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} may be on one node only, and node {holder}, which has it, is not ready ({condition})",
    next: "{then}",
    help: {
      command: FENCE,
      note: "ONLY once you are sure that the machine is off: it makes the cluster take the volume at once",
    },
  },
  "held-by-fenced-node": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} is still attached to node {holder}, which is out of service",
    next: "the taint lets the controller take it without waiting: seconds after the pods on {holder} are gone ({others})",
    help: {
      none: "everything needed has been done; if it lasts, the detach itself fails",
      look: "mooring get attachments",
    },
  },
  "held-by-missing-node": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} may be on one node only, and it is attached to node {holder}, which no longer exists",
    next: "a Node that is gone is no proof that its machine is off: the controller detaches it 6 min after nobody wants it there",
    help: {
      command: "kubectl delete volumeattachment {attachment}",
      note: "ONLY once you are sure that the machine is off",
    },
  },
  "holder-detach-failed": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} cannot be detached from node {holder}, where it was before: {message}",
    next: "driver {driver} is asked again with growing pauses",
    help: {
      none: "the finalizer protects the data: what the driver says has to be put right",
      look: "kubectl describe volumeattachment {attachment}",
    },
  },
  "holder-detaching": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} is being detached from node {holder}, and driver {driver} has not finished",
    next: "it is attached to node {node} as soon as VolumeAttachment {attachment} is gone",
    help: {
      none: "the finalizer protects the data; look at the attacher of {driver} if it lasts",
      look: "kubectl describe volumeattachment {attachment}",
    },
  },
  "holder-unmount-failed": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} may be on one node only, and node {holder} cannot unmount it from {from}: {message}",
    next: "node {holder} tries again with growing pauses; on a healthy node it is never forced",
    help: {
      none: "what the message says has to be put right on {holder}; taking a mounted volume loses writes",
      look: "kubectl describe node {holder}",
    },
  },
  "holder-still-mounted": {
    link: "attachment",
    state: "held",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} is still mounted on node {holder}, though no pod there uses it any more",
    next: "it is detached as soon as the kubelet of {holder} has unmounted it; on a healthy node it is never forced",
    help: {
      none: "taking it from a healthy node could lose writes; see why its kubelet cannot unmount",
      look: "kubectl describe node {holder}",
    },
  },
  "holder-not-released": {
    link: "attachment",
    state: "held",
    confidence: "likely",
    waiting: "held-by-other-node",
    says: "PersistentVolume {pv} is attached to node {holder}, where nobody uses it, and no controller detaches it",
    next: "the attach/detach controller does this within seconds where it runs",
    help: {
      command: "kubectl --namespace kube-system get leases,pods",
      note: "is kube-controller-manager or mooring controller running?",
    },
  },
} as const satisfies Record<string, Words>;
