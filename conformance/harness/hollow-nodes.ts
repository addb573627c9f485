import { setTimeout as sleep } from "node:timers/promises";
import { nodes } from "../../src/kube/api/node.ts";
import { pods, type Pod } from "../../src/kube/api/pod.ts";
import type { Api } from "./api.ts";
import type { Stage } from "./stage.ts";

/**
 * Nodes with nothing behind them, as Kubernetes calls those of its own scale tests: they renew their leases, say of every
 * pod that was placed on them that it runs, and let it go when it is deleted. No container is ever started, so whatever
 * a container would do, print or answer cannot be asked for here.
 */
const LEASE_SECONDS = 40;
const RENEW_MS = 3_000;
/** A kubelet is not told of every change on its own either; whoever updates a pod 500 times would meet 500 conflicts. */
const SETTLE_MS = 100;
const LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const CAPACITY = { cpu: "4", memory: "8Gi", "ephemeral-storage": "64Gi", pods: "110" };

export interface HollowNodes {
  /** From now on this one is dead: it renews nothing and its pods stay as they are. */
  abandon(name: string): void;
}

export async function startHollowNodes(
  stage: Stage,
  api: Api,
  names: readonly string[],
): Promise<HollowNodes> {
  const alive = new Set(names);
  for (const name of names) await createNode(api, name);
  for (const name of names) for (const agent of AGENTS) await createAgent(api, agent, name);
  const renew = () => {
    for (const name of alive) void renewLease(api, name).catch(() => undefined);
  };
  const timer = setInterval(renew, RENEW_MS);
  stage.atEnd(() => {
    clearInterval(timer);
    return Promise.resolve();
  });
  let lastAddress = 1;
  const nextAddress = () => {
    lastAddress = (lastAddress % 65_000) + 1;
    return `10.244.${lastAddress >> 8}.${lastAddress & 255}`;
  };
  const informer = await api.follow(pods);
  const due = new Set<string>();
  informer.addHandler(({ kind, key, object: { spec } }) => {
    if (kind === "deleted" || !alive.has(spec?.nodeName ?? "") || due.has(key)) return;
    due.add(key);
    void sleep(SETTLE_MS).then(async () => {
      due.delete(key);
      const pod = informer.get(key);
      // What is refused was changed meanwhile, and that change is the next delta; or the pod is gone.
      if (pod !== undefined) await tend(api, pod, nextAddress).catch(() => undefined);
    });
  });
  // Specs take a node's taints and conditions away and put them back; a kubelet's next status would do that.
  (await api.follow(nodes)).addHandler(({ kind, object }) => {
    const name = object.metadata.name ?? "";
    if (kind !== "deleted" && alive.has(name) && object.status?.capacity === undefined)
      void setStatus(api, name).catch(() => undefined);
  });
  return { abandon: (name) => void alive.delete(name) };
}

async function createNode(api: Api, name: string): Promise<void> {
  await api.send("POST", "/api/v1/nodes", {
    metadata: { name, labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
  });
  await setStatus(api, name);
  await api.send("POST", LEASES, { metadata: { name }, spec: leaseSpec(name) });
}

/**
 * Kubernetes' suite waits a minute for what it expects on every node before it goes on without; 5 specs of preemption
 * take 5 minutes otherwise.
 */
const AGENTS = ["kube-proxy", "fluentd-elasticsearch", "node-problem-detector"];

async function createAgent(api: Api, agent: string, node: string): Promise<void> {
  await api.send("POST", "/api/v1/namespaces/kube-system/pods", {
    metadata: { name: `${agent}-${node}` },
    spec: {
      nodeName: node,
      hostNetwork: true,
      automountServiceAccountToken: false,
      tolerations: [{ operator: "Exists" }],
      containers: [{ name: agent, image: `${agent}:hollow` }],
    },
  });
}

async function setStatus(api: Api, name: string): Promise<void> {
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: "Hollow",
    message: "",
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  });
  await api.send("PATCH", `/api/v1/nodes/${name}/status`, {
    status: {
      capacity: CAPACITY,
      allocatable: CAPACITY,
      conditions: [
        condition("MemoryPressure", "False"),
        condition("DiskPressure", "False"),
        condition("PIDPressure", "False"),
        condition("Ready", "True"),
      ],
      addresses: [
        { type: "InternalIP", address: "127.0.0.1" },
        { type: "Hostname", address: name },
      ],
      nodeInfo: {
        machineID: "",
        systemUUID: "",
        bootID: "",
        kernelVersion: "",
        osImage: "",
        containerRuntimeVersion: "hollow://1",
        kubeletVersion: "v1.36.3",
        kubeProxyVersion: "",
        operatingSystem: "linux",
        architecture: "amd64",
      },
    },
  });
}

function leaseSpec(holder: string) {
  return {
    holderIdentity: holder,
    leaseDurationSeconds: LEASE_SECONDS,
    renewTime: new Date().toISOString().replace(/Z$/, "000Z"),
  };
}

async function renewLease(api: Api, name: string): Promise<void> {
  await api.send("PATCH", `${LEASES}/${name}`, { spec: leaseSpec(name) });
}

/** What a kubelet would report, or the end of a pod that was asked to go. */
async function tend(api: Api, pod: Pod, nextAddress: () => string): Promise<void> {
  const { metadata } = pod;
  const status: Reported | undefined = pod.status;
  const path = `/api/v1/namespaces/${metadata.namespace ?? ""}/pods/${metadata.name ?? ""}`;
  const over = status?.phase === "Succeeded" || status?.phase === "Failed";
  if (metadata.deletionTimestamp !== undefined) {
    // Whoever counts the pods of a Job wants to read how each of them ended before it is gone.
    if (!over) await api.send("PATCH", `${path}/status`, { metadata: { uid: metadata.uid }, status: KILLED });
    await api.send("DELETE", path, { gracePeriodSeconds: 0, preconditions: { uid: metadata.uid } });
  }
  if (metadata.deletionTimestamp !== undefined || over) return;
  if (status?.phase === "Pending" || status?.observedGeneration !== metadata.generation)
    await api.send("PATCH", `${path}/status`, {
      metadata: { uid: metadata.uid },
      status: runningStatus(pod, status?.podIP ?? nextAddress()),
    });
}

function runningStatus({ metadata, spec, status }: Pod, podIP: string) {
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const condition = (type: string) => ({
    ...{ type, status: "True", lastProbeTime: null, lastTransitionTime: now },
    observedGeneration: metadata.generation,
  });
  const others = (status?.conditions ?? []).filter(({ type }) => !OWN_CONDITIONS.includes(type));
  const shared = (name: string, image = "") => ({
    name,
    image,
    imageID: `hollow://${image}`,
    containerID: `hollow://${metadata.uid ?? ""}/${name}`,
    restartCount: 0,
    lastState: {},
  });
  const ended = { exitCode: 0, reason: "Completed", startedAt: now, finishedAt: now };
  return {
    observedGeneration: metadata.generation,
    phase: "Running",
    startTime: status?.startTime ?? now,
    hostIP: "127.0.0.1",
    hostIPs: [{ ip: "127.0.0.1" }],
    podIP,
    podIPs: [{ ip: podIP }],
    conditions: [...others, ...OWN_CONDITIONS.map(condition)],
    ...(spec?.initContainers === undefined
      ? {}
      : {
          initContainerStatuses: spec.initContainers.map(({ name, image }) => ({
            ...shared(name, image),
            ready: true,
            started: false,
            state: { terminated: ended },
          })),
        }),
    containerStatuses: (spec?.containers ?? []).map(({ name, image }) => ({
      ...shared(name, image),
      ready: true,
      started: true,
      state: { running: { startedAt: now } },
    })),
  };
}

const KILLED = { phase: "Failed", reason: "Killed", message: "the pod was deleted" };

/** As of 1.34; the types of this project are those of an older Kubernetes. */
type Reported = Pod["status"] & { readonly observedGeneration?: number };

/** The last of them is the scheduler's too, but for a pod that came with its node. */
const OWN_CONDITIONS = [
  "PodReadyToStartContainers",
  "Initialized",
  "Ready",
  "ContainersReady",
  "PodScheduled",
];
