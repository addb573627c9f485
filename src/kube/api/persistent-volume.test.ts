import fc from "fast-check";
import { expect, test } from "vitest";
import { trimPersistentVolume, type PersistentVolume } from "./persistent-volume.ts";

const identity = { name: "pv-1", uid: "u-1", resourceVersion: "7" };
const ZONE = "topology.kubernetes.io/zone";
const BETA_ZONE = "failure-domain.beta.kubernetes.io/zone";

/** A volume as a server sends it, with what nobody caches around what somebody reads. */
function volume(spec: object, metadata: object = {}): PersistentVolume {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      ...identity,
      creationTimestamp: "2025-01-01T00:00:00Z",
      finalizers: ["kubernetes.io/pv-protection"],
      labels: { app: "web", [ZONE]: "us-east1-b" },
      annotations: { "pv.kubernetes.io/provisioned-by": "csi.example.com" },
      managedFields: [{ manager: "provisioner" }],
      ...metadata,
    },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      claimRef: { kind: "PersistentVolumeClaim", namespace: "shop", name: "data", uid: "c-1" },
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "fast",
      volumeMode: "Filesystem",
      mountOptions: ["noatime"],
      nodeAffinity: { required: { nodeSelectorTerms: [] } },
      ...spec,
    },
    status: { phase: "Bound" },
  };
}

const common = {
  accessModes: ["ReadWriteOnce"],
  claimRef: { namespace: "shop", name: "data", uid: "c-1" },
  storageClassName: "fast",
  volumeMode: "Filesystem",
};

test("a CSI volume keeps who it is, whose it is, who may hold it and what its driver calls it", () => {
  const csi = {
    driver: "csi.example.com",
    volumeHandle: "v",
    fsType: "ext4",
    volumeAttributes: { identity: "1" },
    controllerPublishSecretRef: { name: "s", namespace: "n" },
  };

  expect(trimPersistentVolume(volume({ csi }))).toStrictEqual({
    metadata: identity,
    spec: { ...common, csi: { driver: "csi.example.com", volumeHandle: "v" } },
  });
});

for (const source of [
  { awsElasticBlockStore: { volumeID: "vol-1", fsType: "ext4", partition: 1, readOnly: true } },
  { vsphereVolume: { volumePath: "p", storagePolicyName: "gold" } },
  { iscsi: { iqn: "i", lun: 0, targetPortal: "t" } },
  { fc: { wwids: ["1"] } },
  { flexVolume: { driver: "example.com/flex", options: { a: "b" } } },
  { sourceOfTheFuture: { id: "1" } },
]) {
  test(`the source ${Object.keys(source)[0] ?? ""} is kept whole, labels and annotations are not`, () => {
    expect(trimPersistentVolume(volume(source))).toStrictEqual({
      metadata: identity,
      spec: { ...common, ...source },
    });
  });
}

const labels = { app: "web", [ZONE]: "us-east1-b", [BETA_ZONE]: "us-east1-c" };
const annotations = {
  note: "x",
  "kubernetes.io/azure-file-resource-group": "group",
  "openstorage.io/auth-secret-name": "token",
  "openstorage.io/auth-secret-namespace": "px",
};

for (const [source, kept] of [
  [{ gcePersistentDisk: { pdName: "d" } }, { labels: { [ZONE]: "us-east1-b", [BETA_ZONE]: "us-east1-c" } }],
  [
    { azureFile: { shareName: "s", secretName: "k" } },
    { annotations: { "kubernetes.io/azure-file-resource-group": "group" } },
  ],
  [
    { portworxVolume: { volumeID: "7" } },
    {
      annotations: {
        "openstorage.io/auth-secret-name": "token",
        "openstorage.io/auth-secret-namespace": "px",
      },
    },
  ],
  [{ csi: { driver: "csi.example.com", volumeHandle: "v" } }, {}],
] as const) {
  test(`${Object.keys(source)[0] ?? ""} keeps of labels and annotations what translation reads of it`, () => {
    const { metadata } = trimPersistentVolume(volume(source, { labels, annotations }));

    expect(metadata).toStrictEqual({ ...identity, ...kept });
  });
}

test("an available volume without labels or spec is no obstacle, and the original is left as it was", () => {
  const full = Object.freeze(volume({ gcePersistentDisk: { pdName: "d" } }));
  const before = structuredClone(full);

  expect(trimPersistentVolume({ metadata: { name: "pv-2" } })).toMatchObject({
    metadata: { name: "pv-2" },
    spec: {},
  });
  expect(trimPersistentVolume(volume({ claimRef: undefined })).spec).not.toHaveProperty("claimRef.uid");
  trimPersistentVolume(full);

  expect(full).toEqual(before);
});

test("whatever stands in a volume, it is trimmed and not left out", () => {
  const field = fc.constantFrom("csi", "claimRef", "accessModes", "azureFile", "gcePersistentDisk");
  const spec = fc.oneof(fc.jsonValue(), fc.dictionary(field, fc.jsonValue()));
  fc.assert(
    fc.property(spec, fc.jsonValue(), fc.jsonValue(), (spec, labels, annotations) => {
      const broken = { metadata: { name: "pv", labels, annotations }, spec } as unknown as PersistentVolume;

      expect(trimPersistentVolume(broken).metadata.name).toBe("pv");
    }),
    { numRuns: 200 },
  );
});
