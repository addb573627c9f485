import type { PersistentVolumeSpec, Volume } from "kubernetes-types/core/v1.js";
import { csiDrivers } from "../kube/api/csi-driver.ts";
import { persistentVolumeClaims } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { KubeObject, ObjectRef, Resource } from "../kube/object.ts";
import { csiVolumeName, toVolumeName, type VolumeName } from "../volumes/names.ts";

/** What a pod's volumes are to its kubelet: those that must be attached first, or that it cannot tell yet. */
export type PodVolumes =
  | { readonly kind: "known"; readonly attachable: readonly VolumeName[] }
  /** A claim is missing or unbound, or its volume is not there. */
  | { readonly kind: "unknown" };

/** Asked of the server each time: a simulated kubelet has few pods and must not be wrong. */
export async function volumesOfPod(client: Client, pod: Pod): Promise<PodVolumes> {
  const attachable: VolumeName[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    const source = await sourceOf(client, pod, volume);
    if (source === undefined) return { kind: "unknown" };
    const name = await attachableName(client, source);
    if (name !== undefined) attachable.push(name);
  }
  return { kind: "known", attachable };
}

/** As far as it is read here. */
interface Source {
  readonly csi?: PersistentVolumeSpec["csi"];
  readonly iscsi?: { readonly targetPortal: string; readonly iqn: string; readonly lun: number };
}

/** The inline source or the one of the volume behind the claim. */
async function sourceOf(client: Client, pod: Pod, volume: Volume): Promise<Source | undefined> {
  const { name = "", namespace } = pod.metadata;
  const claimName = volume.ephemeral ? `${name}-${volume.name}` : volume.persistentVolumeClaim?.claimName;
  // Inline `csi` is ephemeral and never attached; the other sources read the same in both places.
  if (claimName === undefined) return volume.iscsi ? { iscsi: { ...volume.iscsi } } : {};
  const claim = await find(client, persistentVolumeClaims, { name: claimName, namespace });
  const volumeName = claim?.status?.phase === "Bound" ? claim.spec?.volumeName : undefined;
  if (volumeName === undefined) return undefined;
  return (await find(client, persistentVolumes, { name: volumeName }))?.spec;
}

async function attachableName(client: Client, { csi, iscsi }: Source): Promise<VolumeName | undefined> {
  if (iscsi) return toVolumeName("kubernetes.io/iscsi", `${iscsi.targetPortal}:${iscsi.iqn}:${iscsi.lun}`);
  if (csi === undefined) return undefined;
  const driver = await find(client, csiDrivers, { name: csi.driver });
  return driver?.spec.attachRequired === false ? undefined : csiVolumeName(csi);
}

async function find<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  ref: ObjectRef,
): Promise<T | undefined> {
  try {
    return await client.get(resource, ref);
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}
