import type { Node } from "../../src/kube/api/node.ts";
import type { PersistentVolumeClaim } from "../../src/kube/api/persistent-volume-claim.ts";
import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import type { ObjectList } from "../../src/kube/client/client.ts";
import type { KubeObject } from "../../src/kube/object.ts";
import type { Play } from "../harness/cast.ts";
import { until } from "../harness/until.ts";

const STEP_MS_MAX = 60_000;
const CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims";
const PODS = "/api/v1/namespaces/default/pods";
const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";

/**
 * The life of one claim, from nothing to nothing: provisioned, bound, attached for a pod, listed by its node, told of by
 * an event; then the pod goes, the volume is detached, the claim goes, and the volume with it. Answers the times.
 */
export async function oneClaim(scene: Play): Promise<string> {
  const { api } = scene;
  await prepare(scene);
  const startedAtMs = performance.now();
  await api.send("POST", CLAIMS, {
    metadata: { name: "data" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "fast",
      resources: { requests: { storage: "64Mi" } },
    },
  });
  const volume = await until("claim bound", STEP_MS_MAX, async () => {
    const claim = await api.find<PersistentVolumeClaim>(`${CLAIMS}/data`);
    return claim?.status?.phase === "Bound" && claim.spec?.volumeName;
  });
  const boundAtMs = performance.now();
  await attached(scene, volume);
  const attachedAtMs = performance.now();
  await detached(scene);
  const detachedAtMs = performance.now();
  await api.send("DELETE", `${CLAIMS}/data`);
  await until("volume deleted with its claim", STEP_MS_MAX, async () => {
    return (await api.find(`/api/v1/persistentvolumes/${volume}`)) === undefined;
  });
  const times = [
    ["bound", boundAtMs - startedAtMs],
    ["attached", attachedAtMs - boundAtMs],
    ["detached", detachedAtMs - attachedAtMs],
    ["deleted", performance.now() - detachedAtMs],
  ] as const;
  return times.map(([what, ms]) => `${what} ${(ms / 1_000).toFixed(1)} s`).join(", ");
}

/** A node as its kubelet would have registered it, with the driver on it. */
async function prepare({ api, driver, node }: Play): Promise<void> {
  const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
  const made = await api.send("POST", "/api/v1/nodes", { metadata: { name: node, annotations } });
  const ready = { type: "Ready", status: "True", reason: "KubeletReady", message: "" };
  await api.send("PATCH", `/api/v1/nodes/${node}/status`, { status: { conditions: [ready] } });
  const owner = { apiVersion: "v1", kind: "Node", name: node, uid: made.metadata.uid };
  await api.send("POST", "/apis/storage.k8s.io/v1/csinodes", {
    metadata: { name: node, ownerReferences: [owner] },
    spec: { drivers: [{ name: driver, nodeID: node, topologyKeys: null }] },
  });
  await api.send("POST", "/apis/storage.k8s.io/v1/csidrivers", {
    metadata: { name: driver },
    spec: { attachRequired: true },
  });
  await api.send("POST", "/apis/storage.k8s.io/v1/storageclasses", {
    metadata: { name: "fast" },
    provisioner: driver,
    reclaimPolicy: "Delete",
    volumeBindingMode: "Immediate",
  });
}

async function attached({ api, node }: Play, volume: string): Promise<void> {
  await api.send("POST", PODS, {
    metadata: { name: "web" },
    spec: {
      nodeName: node,
      automountServiceAccountToken: false,
      containers: [{ name: "web", image: "web:1" }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    },
  });
  await until("VolumeAttachment attached", STEP_MS_MAX, async () => {
    const { items } = await api.send<ObjectList<VolumeAttachment>>("GET", ATTACHMENTS);
    const own = items.find(({ spec }) => spec.source.persistentVolumeName === volume);
    if (own?.status?.attachError) throw new Error(own.status.attachError.message ?? "attach error");
    return own?.status?.attached;
  });
  await until("volume in the node's volumesAttached", STEP_MS_MAX, async () => {
    const { status } = await api.send<Node>("GET", `/api/v1/nodes/${node}`);
    return status?.volumesAttached?.length === 1;
  });
  await until("event SuccessfulAttachVolume", STEP_MS_MAX, async () => {
    const { items } = await api.send<ObjectList<KubeObject & { reason?: string }>>(
      "GET",
      "/api/v1/namespaces/default/events",
    );
    return items.some(({ reason }) => reason === "SuccessfulAttachVolume");
  });
}

async function detached({ api, node }: Play): Promise<void> {
  await api.send("DELETE", `${PODS}/web`, { gracePeriodSeconds: 0 });
  await until("VolumeAttachment gone", STEP_MS_MAX, async () => {
    const { items } = await api.send<ObjectList<VolumeAttachment>>("GET", ATTACHMENTS);
    return items.length === 0;
  });
  await until("node's volumesAttached empty", STEP_MS_MAX, async () => {
    const { status } = await api.send<Node>("GET", `/api/v1/nodes/${node}`);
    return (status?.volumesAttached ?? []).length === 0;
  });
}
