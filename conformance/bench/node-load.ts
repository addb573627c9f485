import { setTimeout as sleep } from "node:timers/promises";
import type { PersistentVolumeClaim } from "../../src/kube/api/persistent-volume-claim.ts";
import { volumeAttachments } from "../../src/kube/api/volume-attachment.ts";
import type { Play } from "../harness/cast.ts";
import { mountsBelow } from "../harness/host-leftovers.ts";
import { prepareClass } from "../suites/one-claim.ts";
import { prepareNode } from "../suites/one-node.ts";

/** Pods on one node, one after the other, each with a claim of its own. */
export interface NodeSide {
  /** From the creation of a pod that names its node to the mount that its containers would see. */
  readonly publishedMs: readonly number[];
  /** From the deletion of the pod to that of the VolumeAttachment. */
  readonly detachedMs: readonly number[];
}

const STEP_MS_MAX = 90_000;
/** As fine as the figures are wanted; a look at the mount table takes 0.2 ms. */
const LOOK_EVERY_MS = 5;
const CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims";
const PODS = "/api/v1/namespaces/default/pods";

/** The first pod is for everybody to get warm, and does not count. */
export async function measureNode(scene: Play, pods: number): Promise<NodeSide> {
  const { api } = scene;
  await prepareNode(scene);
  if ((await api.find(`/apis/storage.k8s.io/v1/csidrivers/${scene.driver}`)) === undefined)
    await prepareClass(scene);
  const attachments = await api.follow(volumeAttachments);
  const isDetached = async () => attachments.size === 0;
  const publishedMs: number[] = [];
  const detachedMs: number[] = [];
  for (let index = 0; index <= pods; index++) {
    const name = `${scene.node}-${index}`;
    const volume = await createClaim(scene, name);
    const createdAtMs = performance.now();
    const { metadata } = await api.send("POST", PODS, podOf(scene, name));
    const target = `${scene.root}/pods/${metadata.uid ?? ""}/volumes/kubernetes.io~csi/${volume}/mount`;
    await soon(scene, `${name} published`, async () => (await mountsBelow(scene.root)).includes(target));
    if (index > 0) publishedMs.push(performance.now() - createdAtMs);
    const deletedAtMs = performance.now();
    await api.send("DELETE", `${PODS}/${name}`, { gracePeriodSeconds: 0 });
    await soon(scene, `${name} detached`, isDetached);
    if (index > 0) detachedMs.push(performance.now() - deletedAtMs);
    await removeClaim(scene, name, volume);
  }
  return { publishedMs, detachedMs };
}

async function createClaim({ api, stage }: Play, name: string): Promise<string> {
  await api.send("POST", CLAIMS, {
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "fast",
      resources: { requests: { storage: "64Mi" } },
    },
  });
  return stage.until(`${name} bound`, STEP_MS_MAX, async () => {
    const claim = await api.find<PersistentVolumeClaim>(`${CLAIMS}/${name}`);
    return claim?.status?.phase === "Bound" && claim.spec?.volumeName;
  });
}

function podOf({ node }: Play, name: string): object {
  return {
    metadata: { name },
    spec: {
      nodeName: node,
      // There is no network for pods, and without this the kubelet would wait for one.
      hostNetwork: true,
      automountServiceAccountToken: false,
      containers: [{ name: "web", image: "web:1", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: name } }],
    },
  };
}

/** The next pod finds the driver as this one did. */
async function removeClaim({ api, stage }: Play, name: string, volume: string): Promise<void> {
  await api.send("DELETE", `${CLAIMS}/${name}`);
  await stage.until(
    `${volume} deleted`,
    STEP_MS_MAX,
    async () => (await api.find(`/api/v1/persistentvolumes/${volume}`)) === undefined,
  );
}

/** `until` looks every 100 ms, which is longer than what is measured here. */
async function soon({ stage }: Play, what: string, ask: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + STEP_MS_MAX;
  while (!(await ask())) {
    stage.signal.throwIfAborted();
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within ${STEP_MS_MAX / 1_000} s`);
    await sleep(LOOK_EVERY_MS);
  }
}
