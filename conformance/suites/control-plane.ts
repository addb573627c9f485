import type { Node } from "../../src/kube/api/node.ts";
import type { PersistentVolumeClaim } from "../../src/kube/api/persistent-volume-claim.ts";
import type { Pod } from "../../src/kube/api/pod.ts";
import type { ObjectList } from "../../src/kube/client/client.ts";
import type { KubeObject } from "../../src/kube/object.ts";
import type { Api } from "../harness/api.ts";
import { startEmbedded } from "../harness/embedded.ts";
import { startHollowNodes } from "../harness/hollow-nodes.ts";
import { SCHEDULER_USER, startPeer, type PeerAtWork } from "../harness/peers-at-work.ts";
import type { Stage } from "../harness/stage.ts";
import { noneStuck } from "./informers-said.ts";
import type { Performance } from "./suite.ts";

const STEP_MS_MAX = 90_000;
/** Of a node that is silent; 50 s by default. Its controller looks every 5 s. */
const GRACE_SECONDS = 12;
const NODES = ["node-a", "node-b"] as const;
const SPACE = "shop";
const IN_SPACE = `/api/v1/namespaces/${SPACE}`;
const APPS = `/apis/apps/v1/namespaces/${SPACE}`;

/**
 * kube-controller-manager and kube-scheduler on `mooring apiserver`, whose own controllers are off: what they do for a
 * cluster they do here. Every kind they list is served, or their informers would say so.
 */
export async function controlPlane({ stage, binaries }: Performance): Promise<string> {
  await binaries.need("kube-controller-manager", "kube-scheduler");
  const server = await startEmbedded(stage, {
    flags: ["--controllers=event-expiry"],
    users: [SCHEDULER_USER],
  });
  const { api, kubeconfig } = server;
  try {
    const manager = await startPeer(stage, "kube-controller-manager", {
      binaries,
      kubeconfig,
      flags: [`--node-monitor-grace-period=${GRACE_SECONDS}s`],
    });
    const scheduler = await startPeer(stage, "kube-scheduler", {
      binaries,
      kubeconfig: server.kubeconfigOf(SCHEDULER_USER),
    });
    const hollow = await startHollowNodes(stage, api, NODES);
    const scene = { stage, api };
    await createSpace(scene);
    await waitForFirstConsumer(scene);
    await statefulSet(scene);
    await deploymentCollected(scene);
    hollow.abandon("node-b");
    const unknownSeconds = await deadNode(scene);
    await spaceEmptied(scene);
    const kinds = await healthy(scene, { manager, scheduler });
    return `${kinds}, dead node Unknown after ${unknownSeconds.toFixed(0)} s`;
  } finally {
    await server.close();
  }
}

interface Scene {
  readonly stage: Stage;
  readonly api: Api;
}

/** A namespace is fit for pods once the real controllers have put an account and the authority's certificate there. */
async function createSpace({ stage, api }: Scene): Promise<void> {
  await api.send("POST", "/api/v1/namespaces", { metadata: { name: SPACE } });
  await stage.until("service account and kube-root-ca.crt of a new namespace", STEP_MS_MAX, async () => {
    const account = await api.find(`${IN_SPACE}/serviceaccounts/default`);
    return account !== undefined && (await api.find(`${IN_SPACE}/configmaps/kube-root-ca.crt`)) !== undefined;
  });
  await api.send("POST", "/apis/storage.k8s.io/v1/storageclasses", {
    metadata: { name: "local" },
    provisioner: "kubernetes.io/no-provisioner",
    volumeBindingMode: "WaitForFirstConsumer",
  });
}

/** A volume on one node: whoever places the pod has to know of it, bind the claim, and place the pod there. */
async function waitForFirstConsumer({ stage, api }: Scene): Promise<void> {
  await createVolume(api, "only-b", "node-b");
  await api.send("POST", `${IN_SPACE}/persistentvolumeclaims`, { metadata: { name: "cart" }, spec: CLAIM });
  await stage.until("event WaitForFirstConsumer", STEP_MS_MAX, async () => {
    const { items } = await api.send<ObjectList<KubeObject & { reason?: string }>>(
      "GET",
      `${IN_SPACE}/events`,
    );
    return items.some(({ reason }) => reason === "WaitForFirstConsumer");
  });
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "cart" } }];
  await api.send("POST", `${IN_SPACE}/pods`, {
    metadata: { name: "cart" },
    spec: { containers: [{ name: "cart", image: "cart:1" }], volumes },
  });
  await stage.until("pod placed where its volume is", STEP_MS_MAX, async () => {
    const pod = await api.find<Pod>(`${IN_SPACE}/pods/cart`);
    return pod?.spec?.nodeName === "node-b" && pod.status?.phase === "Running";
  });
  await bound({ stage, api }, "cart", "only-b");
}

async function bound({ stage, api }: Scene, name: string, volume?: string): Promise<void> {
  await stage.until(`claim ${name} bound`, STEP_MS_MAX, async () => {
    const claim = await api.find<PersistentVolumeClaim>(`${IN_SPACE}/persistentvolumeclaims/${name}`);
    if (claim?.status?.phase !== "Bound") return false;
    if (volume !== undefined && claim.spec?.volumeName !== volume)
      throw new Error(`bound to ${claim.spec?.volumeName ?? "nothing"}`);
    return true;
  });
}

/** Each pod of the set has a claim of its own, made from the template and bound. */
async function statefulSet(scene: Scene): Promise<void> {
  const { stage, api } = scene;
  for (const [index, node] of ["node-a", "node-a", "node-b"].entries())
    await createVolume(api, `disk-${index}`, node);
  await api.send("POST", `${APPS}/statefulsets`, {
    metadata: { name: "db" },
    spec: {
      ...workload("db", 3),
      serviceName: "db",
      volumeClaimTemplates: [{ metadata: { name: "data" }, spec: CLAIM }],
    },
  });
  for (const index of [0, 1, 2]) await bound(scene, `data-db-${index}`);
  await stage.until("3 pods of the set ready", STEP_MS_MAX, async () => {
    const set = await api.send<Counted>("GET", `${APPS}/statefulsets/db`);
    return set.status?.readyReplicas === 3;
  });
}

/** The real garbage collector, from the Deployment through its ReplicaSet to its pods. */
async function deploymentCollected({ stage, api }: Scene): Promise<void> {
  await api.send("POST", `${APPS}/deployments`, { metadata: { name: "web" }, spec: workload("web", 2) });
  await stage.until("2 pods of the deployment ready", STEP_MS_MAX, async () => {
    const deployment = await api.send<Counted>("GET", `${APPS}/deployments/web`);
    return deployment.status?.readyReplicas === 2;
  });
  await api.send("DELETE", `${APPS}/deployments/web`, { propagationPolicy: "Background" });
  await stage.until("ReplicaSet and pods gone with their Deployment", STEP_MS_MAX, async () => {
    const sets = await api.send<ObjectList<KubeObject>>("GET", `${APPS}/replicasets`);
    const pods = await api.send<ObjectList<KubeObject>>("GET", `${IN_SPACE}/pods?labelSelector=app%3Dweb`);
    if (sets.items.length + pods.items.length === 0) return true;
    throw new Error(`${sets.items.length} ReplicaSets and ${pods.items.length} pods left`);
  });
}

async function deadNode({ stage, api }: Scene): Promise<number> {
  const sinceMs = performance.now();
  await stage.until("silent node Unknown and tainted", STEP_MS_MAX, async () => {
    const { spec, status } = await api.send<Node>("GET", "/api/v1/nodes/node-b");
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    const tainted = spec?.taints?.some(({ key }) => key === "node.kubernetes.io/unreachable");
    return ready?.status === "Unknown" && ready.reason === "NodeStatusUnknown" && tainted;
  });
  const other = await api.send<Node>("GET", "/api/v1/nodes/node-a");
  const ready = other.status?.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status !== "True") throw new Error(`node-a, which lives, is ${ready?.status ?? "nothing"}`);
  return (performance.now() - sinceMs) / 1_000;
}

/** Everything that was made above goes with the namespace; what is on the dead node goes since nobody confirms it. */
async function spaceEmptied({ stage, api }: Scene): Promise<void> {
  await api.send("DELETE", "/api/v1/nodes/node-b");
  await api.send("DELETE", `/api/v1/namespaces/${SPACE}`);
  await stage.until("namespace gone with all that was in it", STEP_MS_MAX, async () => {
    const left = await api.find<KubeObject & { status?: { conditions?: readonly unknown[] } }>(
      `/api/v1/namespaces/${SPACE}`,
    );
    if (left === undefined) return true;
    throw new Error(JSON.stringify(left.status?.conditions ?? []).slice(0, 300));
  });
}

/** Asked at the end, when everything was used: nobody waits for a cache, and no kind was refused at any time. */
async function healthy(
  { stage }: Scene,
  { manager, scheduler }: { readonly manager: PeerAtWork; readonly scheduler: PeerAtWork },
): Promise<string> {
  for (const program of [manager, scheduler])
    for (const path of program === scheduler ? ["/healthz", "/readyz"] : ["/healthz"]) {
      const { status, body } = await program.page(path);
      if (status !== 200) throw new Error(`${program.name} ${path}: ${status} ${body.slice(0, 200)}`);
    }
  const said = await stage.until("garbage collector synced", STEP_MS_MAX, async () => {
    const log = await manager.said();
    return log.includes("all resource monitors have synced") && log;
  });
  const started = new Set(
    [...said.matchAll(/"Controller starting..." controller="([^"]+)"/g)].map(([, n]) => n),
  );
  const managerKinds = noneStuck(manager.name, said);
  const schedulerKinds = noneStuck(scheduler.name, await scheduler.said());
  return `${started.size} controllers, ${managerKinds} and ${schedulerKinds} kinds cached, none refused`;
}

type Counted = KubeObject & { readonly status?: { readonly readyReplicas?: number } };

const CLAIM = {
  accessModes: ["ReadWriteOnce"],
  storageClassName: "local",
  resources: { requests: { storage: "1Gi" } },
};

function workload(app: string, replicas: number) {
  return {
    replicas,
    selector: { matchLabels: { app } },
    template: { metadata: { labels: { app } }, spec: { containers: [{ name: app, image: `${app}:1` }] } },
  };
}

async function createVolume(api: Api, name: string, node: string): Promise<void> {
  const matchExpressions = [{ key: "kubernetes.io/hostname", operator: "In", values: [node] }];
  await api.send("POST", "/api/v1/persistentvolumes", {
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      storageClassName: "local",
      local: { path: `/mnt/${name}` },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  });
}
