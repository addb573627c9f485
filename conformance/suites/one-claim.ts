import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Node } from "../../src/kube/api/node.ts";
import type { PersistentVolumeClaim } from "../../src/kube/api/persistent-volume-claim.ts";
import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import type { ObjectList } from "../../src/kube/client/client.ts";
import type { KubeObject } from "../../src/kube/object.ts";
import type { Play } from "../harness/cast.ts";
import { calledInOrder } from "./driver-calls.ts";
import { inUse, mounted, prepareNode, unmounted } from "./one-node.ts";

/** A claim was bound after 0.4 s on a machine at rest, and after 19 s where 27 processes wanted its two cores. */
const STEP_MS_MAX = 60_000;
const CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims";
const PODS = "/api/v1/namespaces/default/pods";
const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";

/**
 * The life of one claim, from nothing to nothing: provisioned, bound, attached for a pod, listed by its node, told of by
 * an event, and mounted where the cast has somebody who mounts; then the pod goes, the volume is unmounted and detached,
 * the claim goes, and the volume with it. Answers the times.
 */
export async function oneClaim(scene: Play): Promise<string> {
  const { api, stage, cast } = scene;
  await prepareNode(scene);
  await prepareClass(scene);
  const times: string[] = [];
  let sinceMs = performance.now();
  const lap = (what: string) => {
    times.push(`${what} ${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`);
    sinceMs = performance.now();
  };
  await createClaim(scene);
  // A claim that waits for the scheduler is bound only for a pod; any other has to be bound without one.
  if (cast.scheduler === "real") await createPod(scene);
  const volume = await bound(scene);
  lap("bound");
  if (cast.scheduler === "absent") await createPod(scene);
  await attached(scene, volume);
  lap("attached");
  if (cast.node !== "absent") {
    await mounted(scene, volume);
    lap("mounted");
  }
  await api.send("DELETE", `${PODS}/web`, { gracePeriodSeconds: cast.node === "kubelet" ? 1 : 0 });
  if (cast.node !== "absent") {
    await unmounted(scene);
    lap("unmounted");
  }
  await detached(scene);
  lap("detached");
  if (cast.node !== "absent") await inUse(scene, 0);
  await api.send("DELETE", `${CLAIMS}/data`);
  await stage.until("volume deleted with its claim", STEP_MS_MAX, async () => {
    return (await api.find(`/api/v1/persistentvolumes/${volume}`)) === undefined;
  });
  lap("deleted");
  await calledInOrder(scene);
  // The real driver is not what is tried here, and keeps its volumes in another way.
  if (cast.driver === "ours")
    await stage.until("the driver's files of the volume gone", STEP_MS_MAX, async () => {
      return (await readdir(join(scene.driverState, "volumes"))).length === 0;
    });
  return times.join(", ");
}

export async function prepareClass({ api, cast, driver }: Play): Promise<void> {
  await api.send("POST", "/apis/storage.k8s.io/v1/csidrivers", {
    metadata: { name: driver },
    spec: { attachRequired: true },
  });
  await api.send("POST", "/apis/storage.k8s.io/v1/storageclasses", {
    metadata: { name: "fast" },
    provisioner: driver,
    reclaimPolicy: "Delete",
    volumeBindingMode: cast.scheduler === "real" ? "WaitForFirstConsumer" : "Immediate",
  });
}

async function createClaim({ api, cast, stage }: Play): Promise<void> {
  await api.send("POST", CLAIMS, {
    metadata: { name: "data" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "fast",
      resources: { requests: { storage: "64Mi" } },
    },
  });
  if (cast.scheduler === "real")
    await stage.until("event WaitForFirstConsumer", STEP_MS_MAX, () => isTold(api, "WaitForFirstConsumer"));
}

async function createPod({ api, cast, node }: Play): Promise<void> {
  await api.send("POST", PODS, {
    metadata: { name: "web" },
    spec: {
      ...(cast.scheduler === "real" ? {} : { nodeName: node }),
      // There is no network for pods, and without this the kubelet would wait for one.
      hostNetwork: true,
      automountServiceAccountToken: false,
      // Agents mount only what a container asks for.
      containers: [{ name: "web", image: "web:1", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data" } }],
    },
  });
}

async function bound({ api, stage }: Play): Promise<string> {
  return stage.until("claim bound", STEP_MS_MAX, async () => {
    const claim = await api.find<PersistentVolumeClaim>(`${CLAIMS}/data`);
    return claim?.status?.phase === "Bound" && claim.spec?.volumeName;
  });
}

async function attached({ api, node, stage }: Play, volume: string): Promise<void> {
  await stage.until("VolumeAttachment attached", STEP_MS_MAX, async () => {
    const { items } = await api.send<ObjectList<VolumeAttachment>>("GET", ATTACHMENTS);
    const own = items.find(({ spec }) => spec.source.persistentVolumeName === volume);
    if (own?.status?.attachError) throw new Error(own.status.attachError.message ?? "attach error");
    return own?.status?.attached;
  });
  await stage.until("volume in the node's volumesAttached", STEP_MS_MAX, async () => {
    const { status } = await api.send<Node>("GET", `/api/v1/nodes/${node}`);
    return status?.volumesAttached?.length === 1;
  });
  await stage.until("event SuccessfulAttachVolume", STEP_MS_MAX, () => isTold(api, "SuccessfulAttachVolume"));
}

async function isTold(api: Play["api"], reason: string): Promise<boolean> {
  const { items } = await api.send<ObjectList<KubeObject & { reason?: string }>>(
    "GET",
    "/api/v1/namespaces/default/events",
  );
  return items.some((event) => event.reason === reason);
}

async function detached({ api, node, stage }: Play): Promise<void> {
  await stage.until("VolumeAttachment gone", STEP_MS_MAX, async () => {
    const { items } = await api.send<ObjectList<VolumeAttachment>>("GET", ATTACHMENTS);
    return items.length === 0;
  });
  await stage.until("node's volumesAttached empty", STEP_MS_MAX, async () => {
    const { status } = await api.send<Node>("GET", `/api/v1/nodes/${node}`);
    return (status?.volumesAttached ?? []).length === 0;
  });
}
