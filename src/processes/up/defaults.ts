import type { Client } from "../../kube/client/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { KubeObject, Resource } from "../../kube/object.ts";

/** `mooring driver`'s own default. */
export const DRIVER_NAME = "loop.csi.mooring.dev";

type Fields = KubeObject & Readonly<Record<string, unknown>>;

const storage = (plural: string, kind: string): Resource<Fields> => ({
  ...{ group: "storage.k8s.io", version: "v1", plural, kind, namespaced: false },
});

const snapshotClasses: Resource<Fields> = {
  ...{ group: "snapshot.storage.k8s.io", version: "v1", plural: "volumesnapshotclasses" },
  ...{ kind: "VolumeSnapshotClass", namespaced: false },
};

/**
 * What a cluster with one storage system has: the driver's object, a class that is the default, one that waits for the first
 * pod, one for every way of its own, and a class for snapshots. Made once; whoever changes or deletes one keeps that until
 * the next start, which only adds what is missing.
 */
const OBJECTS: readonly (readonly [Resource<Fields>, Fields])[] = [
  [
    storage("csidrivers", "CSIDriver"),
    {
      metadata: { name: DRIVER_NAME },
      spec: {
        attachRequired: true,
        podInfoOnMount: true,
        fsGroupPolicy: "File",
        volumeLifecycleModes: ["Persistent", "Ephemeral"],
      },
    },
  ],
  storageClass("loop", { annotations: { "storageclass.kubernetes.io/is-default-class": "true" } }),
  storageClass("loop-wait", { volumeBindingMode: "WaitForFirstConsumer" }),
  storageClass("loop-retain", { reclaimPolicy: "Retain" }),
  storageClass("loop-xfs", { parameters: { "csi.storage.k8s.io/fstype": "xfs" } }),
  [
    snapshotClasses,
    {
      metadata: {
        name: "loop",
        annotations: { "snapshot.storage.kubernetes.io/is-default-class": "true" },
      },
      driver: DRIVER_NAME,
      deletionPolicy: "Delete",
    },
  ],
];

function storageClass(
  name: string,
  {
    annotations,
    ...fields
  }: { readonly annotations?: Record<string, string>; readonly [field: string]: unknown },
): readonly [Resource<Fields>, Fields] {
  return [
    storage("storageclasses", "StorageClass"),
    {
      metadata: { name, ...(annotations && { annotations }) },
      provisioner: DRIVER_NAME,
      reclaimPolicy: "Delete",
      volumeBindingMode: "Immediate",
      allowVolumeExpansion: true,
      ...fields,
    },
  ];
}

/** Answers how many of them were missing. */
export async function ensureDefaults(client: Pick<Client, "create">): Promise<number> {
  const made = await Promise.all(
    OBJECTS.map(async ([resource, object]) => {
      try {
        await client.create(resource, object);
        return 1;
      } catch (error) {
        if (isKubeError(error, "AlreadyExists")) return 0;
        throw error;
      }
    }),
  );
  return made.reduce<number>((sum, one) => sum + one, 0);
}
