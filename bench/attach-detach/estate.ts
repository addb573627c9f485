import type { Node } from "../../src/kube/api/node.ts";
import type { PersistentVolumeClaim } from "../../src/kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../src/kube/api/persistent-volume.ts";
import type { Pod } from "../../src/kube/api/pod.ts";
import type { VolumeAttachment } from "../../src/kube/api/volume-attachment.ts";
import type { ObjectList } from "../../src/kube/client/client.ts";
import { ApiError, inParallel, type Api } from "./api.ts";

/**
 * What the benchmark puts into a cluster: nodes without machines, volumes without disks, claims bound to them.
 * Everything carries the name of the run, so that two never meet; `removeEstate` takes all of it away again.
 */
export interface Estate {
  readonly name: string;
  readonly nodes: number;
  readonly volumes: number;
}

export const ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments";
export const BENCH_DRIVER = "bench.mooring.example";

const IN_FLIGHT = 32;

export function podsPath({ name }: Estate): string {
  return `/api/v1/namespaces/${name}/pods`;
}

export function volumeOf({ name }: Estate, index: number): string {
  return `${name}-${index}`;
}

/** Which of our volumes a PersistentVolume or a CSI handle is; NaN if it is somebody else's. */
export function indexOf({ name }: Estate, volume: string): number {
  return volume.startsWith(`${name}-`) ? Number(volume.slice(name.length + 1)) : NaN;
}

export function nodeNameOf({ name, nodes }: Estate, volume: number): string {
  return `${name}-${volume % nodes}`;
}

export async function createEstate(api: Api, estate: Estate): Promise<void> {
  await api.send("POST", "/api/v1/namespaces", { metadata: { name: estate.name } });
  await inParallel(estate.nodes, IN_FLIGHT, (index) => createNode(api, nodeNameOf(estate, index)));
  await inParallel(estate.volumes, IN_FLIGHT, (index) => createVolume(api, estate, index));
}

async function createNode(api: Api, name: string): Promise<void> {
  const annotations = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
  await api.send<Node>("POST", "/api/v1/nodes", { metadata: { name, annotations } });
  const ready = { type: "Ready", status: "True", reason: "KubeletReady", message: "" };
  await api.send("PATCH", `/api/v1/nodes/${name}/status`, { status: { conditions: [ready] } });
}

/** Claim and volume as a binder leaves them, since nobody else binds here. */
async function createVolume(api: Api, estate: Estate, index: number): Promise<void> {
  const name = volumeOf(estate, index);
  const size = { storage: "1Gi" };
  const shared = { accessModes: ["ReadWriteOnce"], storageClassName: "" };
  const claims = `/api/v1/namespaces/${estate.name}/persistentvolumeclaims`;
  const claim = await api.send<PersistentVolumeClaim>("POST", claims, {
    metadata: { name },
    spec: { ...shared, volumeName: name, resources: { requests: size } },
  });
  await api.send<PersistentVolume>("POST", "/api/v1/persistentvolumes", {
    metadata: { name },
    spec: {
      ...shared,
      capacity: size,
      persistentVolumeReclaimPolicy: "Retain",
      csi: { driver: BENCH_DRIVER, volumeHandle: name },
      claimRef: { namespace: estate.name, name, uid: claim.metadata.uid },
    },
  });
  const status = { phase: "Bound", ...shared, capacity: size };
  await api.send("PATCH", `${claims}/${name}/status`, { status: { ...status, storageClassName: undefined } });
}

export async function createPod(api: Api, estate: Estate, index: number): Promise<Pod> {
  return api.send<Pod>("POST", podsPath(estate), {
    metadata: { name: volumeOf(estate, index) },
    spec: {
      nodeName: nodeNameOf(estate, index),
      automountServiceAccountToken: false,
      containers: [{ name: "web", image: "web:1" }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: volumeOf(estate, index) } }],
    },
  });
}

/** At once: no kubelet is there that could confirm its end. */
export async function deletePod(api: Api, estate: Estate, index: number): Promise<void> {
  await api.send("DELETE", `${podsPath(estate)}/${volumeOf(estate, index)}`, { gracePeriodSeconds: 0 });
}

export async function removeEstate(api: Api, estate: Estate): Promise<void> {
  const { name, nodes, volumes } = estate;
  await inParallel(volumes, IN_FLIGHT, async (index) => {
    await ifThere(deletePod(api, estate, index));
    await remove(api, `/api/v1/namespaces/${name}/persistentvolumeclaims/${volumeOf(estate, index)}`);
    await remove(api, `/api/v1/persistentvolumes/${volumeOf(estate, index)}`);
  });
  await inParallel(nodes, IN_FLIGHT, (index) => remove(api, `/api/v1/nodes/${nodeNameOf(estate, index)}`));
  await removeAttachments(api, estate);
  await ifThere(api.send("DELETE", `/api/v1/namespaces/${name}`));
}

/** There are none left, unless a controller did not finish. */
async function removeAttachments(api: Api, estate: Estate): Promise<void> {
  const { items } = await api.send<ObjectList<VolumeAttachment>>("GET", ATTACHMENTS);
  const left = items.filter(
    ({ spec }) => !Number.isNaN(indexOf(estate, spec.source.persistentVolumeName ?? "")),
  );
  await inParallel(left.length, IN_FLIGHT, (index) =>
    remove(api, `${ATTACHMENTS}/${left[index]?.metadata.name ?? ""}`),
  );
}

/** Finalizers first: the controllers that would remove them may not run. */
async function remove(api: Api, path: string): Promise<void> {
  await ifThere(api.send("PATCH", path, { metadata: { finalizers: null } }));
  await ifThere(api.send("DELETE", path));
}

async function ifThere(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
}
