import type { Words } from "./words.ts";

const DESCRIBE = "kubectl --namespace {ns} describe pod {podName}";

/** What goes wrong on the node itself; most of it is known only from events of the pod. */
export const MOUNT = {
  "agent-silent": {
    link: "mount",
    state: "mounting",
    confidence: "likely",
    waiting: "in-use-not-reported",
    says: "PersistentVolume {pv} is attached, but the kubelet of node {node} has not begun to use it (volumesInUse does not name it)",
    next: "a kubelet reports it within 10 s and then mounts it",
    help: { none: "the kubelet's own log says what it does", look: "kubectl describe node {node}" },
  },
  "volume-replaced": {
    link: "mount",
    state: "mounting",
    waiting: "volume-replaced",
    says: "what pod {pod} has mounted as volume {volume} is not what its claim leads to: {message}",
    next: "nothing: what is mounted stays until the pod ends; a new pod gets what the claim leads to then",
    help: {
      command: "kubectl --namespace {ns} delete pod {podName}",
      note: "save first what only the old volume has: once the pod is gone, nothing in the API may lead to it",
    },
  },
  "mount-driver-not-registered": {
    link: "mount",
    state: "mounting",
    says: "the kubelet of node {node} does not know driver {driver}: {message}",
    next: "it is tried again, at most every 2 min, and works once the driver's node plugin has registered",
    help: {
      command: "kubectl get pods --all-namespaces --field-selector spec.nodeName={node}",
      note: "is the node plugin of the driver among them, and running?",
    },
  },
  "secret-missing": {
    link: "mount",
    state: "mounting",
    says: "volume {volume} of pod {pod} needs {secret}, which is not there: {message}",
    next: "it is tried again, at most every 2 min, and works once the Secret exists",
    help: { command: "kubectl --namespace {secretNs} get secrets", note: "it has to be in this namespace" },
  },
  "config-map-missing": {
    link: "mount",
    state: "mounting",
    says: "volume {volume} of pod {pod} needs a ConfigMap that is not there: {message}",
    next: "it is tried again, at most every 2 min, and works once the ConfigMap exists",
    help: { command: "kubectl --namespace {ns} get configmaps" },
  },
  "fs-unsupported": {
    link: "mount",
    state: "mounting",
    confidence: "likely",
    says: "node {node} does not have what mounting volume {volume} needs, the file system or protocol in its kernel, or its mount helper: {message}",
    next: "it is tried again, at most every 2 min, and works once the node has it",
    help: {
      none: "load the kernel module or install the helper (mount.nfs, mount.cifs) on {node}; the volume itself is not at fault, unless its fsType is misspelt",
      look: "kubectl get node {node} --output wide",
    },
  },
  "mount-plugin-missing": {
    link: "mount",
    state: "mounting",
    says: "nobody on node {node} serves volume {volume} of pod {pod}: {message}",
    next: "it is tried again, at most every 2 min, and works once a driver for it is on the node",
    help: {
      none: "install the driver that the volume names on {node}, a FlexVolume driver in the kubelet's plugin directory",
      look: "kubectl --namespace {ns} get pod {podName} --output yaml",
    },
  },
  "wrong-fs-type": {
    link: "mount",
    state: "mounting",
    confidence: "likely",
    says: "what is on volume {volume} is not the file system asked for: {message}",
    next: "it is tried again and fails again; nobody formats a disk that has something on it",
    help: {
      none: "formatting would destroy what is there; see what the disk holds and correct fsType",
      look: DESCRIBE,
    },
  },
  "fsck-failed": {
    link: "mount",
    state: "mounting",
    says: "the file system on volume {volume} is damaged and its check could not repair it: {message}",
    next: "it is tried again and fails again",
    help: { none: "repairing can lose data: take a snapshot first, then run fsck by hand", look: DESCRIBE },
  },
  "mount-denied": {
    link: "mount",
    state: "mounting",
    confidence: "likely",
    says: "volume {volume} of pod {pod} may not be mounted on node {node}: {message}",
    next: "it is tried again, at most every 2 min",
    help: {
      none: "the right that the message names is missing at the storage or on the node",
      look: DESCRIBE,
    },
  },
  "mount-node-conflict": {
    link: "mount",
    state: "mounting",
    says: "volume {volume} cannot be used on node {node}, says its kubelet: {message}",
    next: "nothing: the pod stays on its node",
    help: {
      command: "kubectl --namespace {ns} delete pod {podName}",
      note: "if a controller made it, the next one is placed where the volume is",
    },
  },
  "mount-timeout": {
    link: "mount",
    state: "mounting",
    says: "the driver does not answer in time when node {node} mounts volume {volume}: {message}",
    next: "it is asked again, at most every 2 min; the first try may still be under way",
    help: {
      none: "the driver's node plugin on {node} has to be looked at; a hung mount survives its pod",
      look: DESCRIBE,
    },
  },
  "fs-group-slow": {
    link: "mount",
    state: "mounting",
    says: "node {node} is changing the group of every file on volume {volume} (fsGroup), which takes long: {message}",
    next: "the pod starts when it is done; it begins anew if the pod is deleted",
    help: {
      none: "let it finish; fsGroupChangePolicy: OnRootMismatch in the pod avoids it the next time",
      look: DESCRIBE,
    },
  },
  "mount-failed": {
    link: "mount",
    state: "mounting",
    says: "volume {volume} of pod {pod} cannot be mounted on node {node}: {message}",
    next: "it is tried again, at most every 2 min",
    help: { none: "what the message says has to be put right", look: DESCRIBE },
  },
  "unmount-failed": {
    link: "mount",
    state: "detaching",
    waiting: "still-mounted",
    says: "node {node} cannot unmount volume {volume} from {from}: {message}",
    next: "it is tried again with growing pauses; the volume stays attached until then",
    help: {
      none: "what the message says has to be put right; detaching a mounted volume loses writes",
      look: "kubectl describe node {node}",
    },
  },
  "node-waits": {
    link: "mount",
    state: "mounting",
    says: "Mooring on node {node} has not mounted volume {volume} yet ({waiting}): {message}",
    next: "it goes on as soon as that changes",
    help: { none: "docs/reference/waiting says what helps for {waiting}", look: DESCRIBE },
  },
  "agent-behind": {
    link: "mount",
    state: "mounting",
    confidence: "likely",
    says: "Mooring on node {node} waits ({waiting}) for what the Node has long had: its {list} names volume {volume}, and the agent has not heard of it",
    next: "its watch of the API server is silent or late; an agent opens a silent one again after 90 s",
    help: {
      none: "the way from {node} to the API server has to be looked at, and the agent's log",
      look: "kubectl describe node {node}",
    },
  },
  "mount-pending": {
    link: "mount",
    state: "mounting",
    confidence: "likely",
    says: "no fault is known of volume {volume}, and the kubelet of node {node} has not started pod {pod} yet",
    next: "it mounts within seconds; nobody has reported a failure",
    help: { none: "nothing needs doing yet", look: DESCRIBE },
  },
} as const satisfies Record<string, Words>;
