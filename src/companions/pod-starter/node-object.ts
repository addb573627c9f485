import type { NodeCondition, NodeStatus } from "kubernetes-types/core/v1.js";
import { MANAGED_ATTACH_ANNOTATION, VOLUMES_UNREAD, type Node } from "../../kube/api/node.ts";
import type { Lease } from "../../kube/api/lease.ts";
import { formatMicroTime, formatTime } from "../../kube/time.ts";

/** What a node says of itself: the machine it is, and that it is there. Pure. */
export interface NodeFacts {
  readonly nodeName: string;
  readonly hostIP: string;
  /** As Kubernetes names them: `linux`, `amd64`. */
  readonly os: string;
  readonly arch: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly kubeletVersion: string;
  /** Another at each boot of its machine; none where nobody can tell. */
  readonly bootId?: string | undefined;
  /** Zones and the like. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Upstream's default for a kubelet. */
const PODS_MAX = 110;

export function nodeMetadata(facts: NodeFacts): {
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
} {
  const { nodeName, os, arch } = facts;
  const labels = {
    "kubernetes.io/hostname": nodeName,
    "kubernetes.io/os": os,
    "kubernetes.io/arch": arch,
    ...facts.labels,
  };
  // Attaching is the controller's business, here as with any kubelet of this decade.
  return { labels, annotations: { [MANAGED_ATTACH_ANNOTATION]: "true" } };
}

/** Without volumes in use and attached, which belong to the volume manager and the controller. */
export function nodeStatus(facts: NodeFacts, ready: NodeCondition): NodeStatus {
  const { nodeName, hostIP, os, arch, cpus, memoryBytes, kubeletVersion, bootId = "" } = facts;
  const resources = { cpu: String(cpus), memory: String(memoryBytes), pods: String(PODS_MAX) };
  return {
    capacity: resources,
    allocatable: resources,
    addresses: [
      { type: "InternalIP", address: hostIP },
      { type: "Hostname", address: nodeName },
    ],
    conditions: [ready],
    nodeInfo: {
      operatingSystem: os,
      architecture: arch,
      kubeletVersion,
      containerRuntimeVersion: "mooring://none",
      kubeProxyVersion: "",
      kernelVersion: "",
      osImage: "",
      machineID: "",
      systemUUID: "",
      bootID: bootId,
    },
  };
}

/** `unread`: it takes pods, and cannot tell yet what is mounted on it. */
export type Readiness = "ready" | "unread" | "stopped";

const READINESS = {
  ready: ["True", "MooringReady", "the node's volume manager takes pods"],
  unread: [
    "True",
    VOLUMES_UNREAD,
    "the node's volume manager is finding out what is mounted; until then it stays attached",
  ],
  stopped: ["False", "MooringStopped", "the process of this node was stopped; its pods stay as they are"],
} as const;

export function readyCondition(node: Node | undefined, readiness: Readiness, now: Date): NodeCondition {
  const [status, reason, message] = READINESS[readiness];
  const before = readyOf(node);
  const time = formatTime(now);
  const changedAt = before?.status === status ? before.lastTransitionTime : undefined;
  return {
    type: "Ready",
    status,
    reason,
    message,
    lastHeartbeatTime: time,
    lastTransitionTime: changedAt ?? time,
  };
}

/**
 * What a running node says. While its volume manager does not know what is mounted, a Node that says it does was told so by the
 * process before, and lists what that knew.
 */
export function readinessOf(node: Node | undefined, isRead: boolean): Readiness {
  const ready = readyOf(node);
  return isRead || (ready?.status === "True" && ready.reason !== VOLUMES_UNREAD) ? "ready" : "unread";
}

/** True where the node no longer says what it should: somebody changed or replaced it, or it has more to say. */
export function isToldWrong(node: Node, facts: NodeFacts, readiness: Readiness): boolean {
  const { labels, annotations } = nodeMetadata(facts);
  return (
    readyOf(node)?.status !== "True" ||
    (readiness === "ready" && readyOf(node)?.reason === VOLUMES_UNREAD) ||
    node.status?.allocatable?.["pods"] === undefined ||
    !includes(node.metadata.labels, labels) ||
    !includes(node.metadata.annotations, annotations)
  );
}

/** 40 s, as a kubelet's: four beats may be lost before anybody may call the node unreachable. */
const LEASE_SECONDS = 40;

export function nodeLease(node: Node, now: Date): Lease {
  const { name = "", uid = "" } = node.metadata;
  return {
    metadata: {
      name,
      namespace: "kube-node-lease",
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }],
    },
    spec: { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime: formatMicroTime(now) },
  };
}

function readyOf(node: Node | undefined): NodeCondition | undefined {
  return node?.status?.conditions?.find(({ type }) => type === "Ready");
}

function includes(
  found: Readonly<Record<string, string>> | undefined,
  wanted: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(([key, value]) => found?.[key] === value);
}
