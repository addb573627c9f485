import type { Words } from "./words.ts";

const DESCRIBE = "kubectl --namespace {ns} describe pod {podName}";

/** A pod without a node, and what is wrong with it besides its volumes. */
export const POD = {
  "scheduling-gated": {
    link: "pod",
    state: "unscheduled",
    says: "pod {pod} is held back by its scheduling gates ({gates})",
    next: "it is scheduled once whoever set them takes them away",
    help: { none: "the gates belong to the controller that set them", look: DESCRIBE },
  },
  "unschedulable-limit": {
    link: "pod",
    state: "unscheduled",
    says: "no node has room for another volume of pod {pod}: {message}",
    next: "it is scheduled as soon as a volume is detached from a node that fits, or a node is added",
    help: { command: "mooring get nodes", note: "shows how many volumes each node has, and may have" },
  },
  "unschedulable-cordoned": {
    link: "pod",
    state: "unscheduled",
    says: "pod {pod} gets no node: every node where it and its volumes may be is closed to new pods, cordoned ({nodes})",
    next: "it is scheduled as soon as one of them is uncordoned or a node is added",
    help: { command: "kubectl uncordon {first}", note: "once the work for which it was cordoned is over" },
  },
  "unschedulable-taint": {
    link: "pod",
    state: "unscheduled",
    says: "every node that would do is tainted, and pod {pod} does not tolerate it: {message}",
    next: "it is scheduled as soon as a taint goes or a node is added",
    help: { command: "kubectl get nodes --output custom-columns=NAME:.metadata.name,TAINTS:.spec.taints" },
  },
  "unschedulable-volume": {
    link: "pod",
    state: "unscheduled",
    says: "the volumes of pod {pod} are not where it may run: {message}",
    next: "it is scheduled once a node where the volumes are has room and is allowed",
    help: {
      command:
        "kubectl get persistentvolumes --output custom-columns=NAME:.metadata.name,NODES:.spec.nodeAffinity",
      note: "shows which nodes each volume is for",
    },
  },
  "unschedulable-affinity": {
    link: "pod",
    state: "unscheduled",
    says: "no node matches the selector or affinity of pod {pod}: {message}",
    next: "it is scheduled as soon as a node with those labels is there",
    help: { command: "kubectl get nodes --show-labels" },
  },
  unschedulable: {
    link: "pod",
    state: "unscheduled",
    says: "the scheduler finds no node for pod {pod}: {message}",
    next: "it is tried again at every change of a node or pod",
    help: { none: "what the message says has to change", look: DESCRIBE },
  },
  "scheduler-silent": {
    link: "pod",
    state: "unscheduled",
    confidence: "likely",
    says: "pod {pod} has no node, and scheduler {scheduler} says nothing about it",
    next: "nothing until that scheduler runs",
    help: { command: "kubectl --namespace kube-system get pods", note: "is the scheduler among them?" },
  },
  "held-by-other-pod": {
    link: "pod",
    state: "held",
    says: "claim {claim} is ReadWriteOncePod, and pod {other} has it ({otherState})",
    next: "pod {pod} goes on as soon as pod {other} has ended",
    help: {
      none: "whether {other} may end is for its owner to say",
      look: "kubectl --namespace {ns} get pod {otherName}",
    },
  },
  "pod-not-ended": {
    link: "pod",
    state: "detaching",
    confidence: "likely",
    says: "pod {pod} should have ended {late} ago and has not: {keeps}",
    next: "its volumes stay mounted and attached until it has ended",
    help: {
      none: "forcing its deletion leaves containers and mounts behind that nobody sees any more",
      look: DESCRIBE,
    },
  },
  "container-volume": {
    link: "mount",
    state: "mounting",
    says: "container {container} of pod {pod} cannot use a volume that is mounted: {message}",
    next: "it is started again with growing pauses, and fails until the path is right",
    help: {
      none: "see whether the volume still answers on its node, and whether subPath names what is there",
      look: DESCRIBE,
    },
  },
  "container-waiting": {
    link: "pod",
    state: "waiting",
    says: "its volumes are ready; container {container} waits for another reason: {message}",
    next: "this is none of the volumes' doing",
    help: { none: "see what the container waits for", look: DESCRIBE },
  },
} as const satisfies Record<string, Words>;
