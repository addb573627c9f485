import type { PersistentVolumeSpec } from "kubernetes-types/core/v1.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { trimPersistentVolume, type PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { VolumeSpec } from "../spec.ts";
import { translate } from "./translate.ts";

const ZONE = "topology.kubernetes.io/zone";
const BETA_ZONE = "failure-domain.beta.kubernetes.io/zone";
const SECRET = "openstorage.io/auth-secret-name";
const SECRET_NAMESPACE = "openstorage.io/auth-secret-namespace";
const RESOURCE_GROUP = "kubernetes.io/azure-file-resource-group";
const DISK = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d";

const persistent = (spec: object, metadata: object = {}): VolumeSpec => ({
  kind: "persistent",
  volume: { metadata: { name: "pv-1", ...metadata }, spec: spec },
  readOnly: true,
  migrated: "none",
});

const inline = (source: object): VolumeSpec => ({ kind: "inline", volume: { name: "data", ...source } });

/** The PersistentVolume that came out, or what is wrong. */
function outcome(spec: VolumeSpec, podNamespace?: string): PersistentVolume | string {
  const translation = translate(spec, podNamespace);
  if (translation.kind === "untranslatable") return translation.message;
  return translation.spec.kind === "persistent" ? translation.spec.volume : "left inline";
}

/** Rows of `source of a PersistentVolume, its metadata -> the CSI source`. */
const VOLUMES: readonly (readonly [title: string, source: object, csi: object, metadata?: object])[] = [
  [
    "EBS: an id",
    { awsElasticBlockStore: { volumeID: "vol-1" } },
    { driver: "ebs.csi.aws.com", volumeHandle: "vol-1", volumeAttributes: { partition: "0" } },
  ],
  [
    "EBS: a URL with a zone, and everything set",
    {
      awsElasticBlockStore: {
        volumeID: "aws://us-east-1a/vol-1",
        fsType: "xfs",
        partition: 3,
        readOnly: true,
      },
    },
    {
      driver: "ebs.csi.aws.com",
      volumeHandle: "vol-1",
      fsType: "xfs",
      readOnly: true,
      volumeAttributes: { partition: "3" },
    },
  ],
  [
    "EBS: a URL without a zone, with slashes too many",
    { awsElasticBlockStore: { volumeID: "aws:////vol-1//" } },
    { driver: "ebs.csi.aws.com", volumeHandle: "vol-1", volumeAttributes: { partition: "0" } },
  ],
  [
    "EBS: what is no URL is an id, whatever it looks like",
    { awsElasticBlockStore: { volumeID: "disk/7" } },
    { driver: "ebs.csi.aws.com", volumeHandle: "disk/7", volumeAttributes: { partition: "0" } },
  ],
  [
    "GCE: no zone",
    { gcePersistentDisk: { pdName: "d" } },
    {
      driver: "pd.csi.storage.gke.io",
      volumeHandle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
      volumeAttributes: { partition: "" },
    },
  ],
  [
    "GCE: one zone, and everything set",
    { gcePersistentDisk: { pdName: "d", fsType: "ext4", partition: 2, readOnly: true } },
    {
      driver: "pd.csi.storage.gke.io",
      volumeHandle: "projects/UNSPECIFIED/zones/us-central1-a/disks/d",
      fsType: "ext4",
      readOnly: true,
      volumeAttributes: { partition: "2" },
    },
    { labels: { [ZONE]: "us-central1-a" } },
  ],
  [
    "GCE: the beta label comes first",
    { gcePersistentDisk: { pdName: "d", partition: 0 } },
    {
      driver: "pd.csi.storage.gke.io",
      volumeHandle: "projects/UNSPECIFIED/zones/us-east1-b/disks/d",
      volumeAttributes: { partition: "" },
    },
    { labels: { [ZONE]: "us-central1-a", [BETA_ZONE]: "us-east1-b" } },
  ],
  [
    "GCE: an empty beta label counts for nothing",
    { gcePersistentDisk: { pdName: "d" } },
    {
      driver: "pd.csi.storage.gke.io",
      volumeHandle: "projects/UNSPECIFIED/zones/us-central1-a/disks/d",
      volumeAttributes: { partition: "" },
    },
    { labels: { [ZONE]: "us-central1-a", [BETA_ZONE]: "" } },
  ],
  [
    "GCE: several zones of one region",
    { gcePersistentDisk: { pdName: "d" } },
    {
      driver: "pd.csi.storage.gke.io",
      volumeHandle: "projects/UNSPECIFIED/regions/us-central1/disks/d",
      volumeAttributes: { partition: "" },
    },
    { labels: { [ZONE]: "us-central1-a__us-central1-c" } },
  ],
  ["Cinder: bare", { cinder: { volumeID: "v" } }, { driver: "cinder.csi.openstack.org", volumeHandle: "v" }],
  [
    "Cinder: everything set",
    { cinder: { volumeID: "v", fsType: "ext4", readOnly: true, secretRef: { name: "s" } } },
    { driver: "cinder.csi.openstack.org", volumeHandle: "v", fsType: "ext4", readOnly: true },
  ],
  [
    "Azure disk: bare",
    { azureDisk: { diskName: "d", diskURI: DISK } },
    { driver: "disk.csi.azure.com", volumeHandle: DISK, volumeAttributes: { kind: "Managed" } },
  ],
  [
    "Azure disk: everything set, kind in any case",
    {
      azureDisk: {
        diskName: "d",
        diskURI: DISK,
        kind: "mAnAgEd",
        cachingMode: "ReadOnly",
        fsType: "xfs",
        readOnly: true,
      },
    },
    {
      driver: "disk.csi.azure.com",
      volumeHandle: DISK,
      fsType: "xfs",
      readOnly: true,
      volumeAttributes: { kind: "Managed", cachingmode: "ReadOnly", fstype: "xfs" },
    },
  ],
  [
    "Azure disk: an empty caching mode is passed on",
    { azureDisk: { diskName: "d", diskURI: DISK, cachingMode: "", fsType: "" } },
    {
      driver: "disk.csi.azure.com",
      volumeHandle: DISK,
      volumeAttributes: { kind: "Managed", cachingmode: "", fstype: "" },
    },
  ],
  [
    "Azure file: the namespace of the secret",
    {
      azureFile: {
        shareName: "s",
        secretName: "azure-storage-account-acct-secret",
        secretNamespace: "vault",
        readOnly: true,
      },
      claimRef: { namespace: "shop", name: "c", uid: "u" },
    },
    {
      driver: "file.csi.azure.com",
      volumeHandle: "group#acct#s#pv-1#vault",
      readOnly: true,
      volumeAttributes: { sharename: "s" },
      nodeStageSecretRef: { name: "azure-storage-account-acct-secret", namespace: "vault" },
    },
    { annotations: { [RESOURCE_GROUP]: "group" } },
  ],
  [
    "Azure file: the namespace of the claim, and a secret called otherwise",
    {
      azureFile: { shareName: "s", secretName: "key" },
      claimRef: { namespace: "shop", name: "c", uid: "u" },
    },
    {
      driver: "file.csi.azure.com",
      volumeHandle: "#key#s#pv-1#shop",
      volumeAttributes: { sharename: "s" },
      nodeStageSecretRef: { name: "key", namespace: "shop" },
    },
  ],
  [
    "Azure file: a secret that only begins as if it named an account",
    { azureFile: { shareName: "s", secretName: "azure-storage-account--secret", secretNamespace: "n" } },
    {
      driver: "file.csi.azure.com",
      volumeHandle: "#azure-storage-account--secret#s#pv-1#n",
      volumeAttributes: { sharename: "s" },
      nodeStageSecretRef: { name: "azure-storage-account--secret", namespace: "n" },
    },
  ],
  [
    "vSphere: bare",
    { vsphereVolume: { volumePath: "[ds] a.vmdk" } },
    { driver: "csi.vsphere.vmware.com", volumeHandle: "[ds] a.vmdk" },
  ],
  [
    "vSphere: with a policy",
    { vsphereVolume: { volumePath: "[ds] a.vmdk", fsType: "ext4", storagePolicyName: "gold" } },
    {
      driver: "csi.vsphere.vmware.com",
      volumeHandle: "[ds] a.vmdk",
      fsType: "ext4",
      volumeAttributes: { storagepolicyname: "gold" },
    },
  ],
  [
    "Portworx: without a secret, and no word of readOnly",
    { portworxVolume: { volumeID: "7", fsType: "ext4", readOnly: true } },
    { driver: "pxd.portworx.com", volumeHandle: "7", fsType: "ext4" },
  ],
  [
    "Portworx: one secret for every call",
    { portworxVolume: { volumeID: "7" } },
    {
      driver: "pxd.portworx.com",
      volumeHandle: "7",
      controllerPublishSecretRef: { name: "token", namespace: "px" },
      nodeStageSecretRef: { name: "token", namespace: "px" },
      nodePublishSecretRef: { name: "token", namespace: "px" },
      controllerExpandSecretRef: { name: "token", namespace: "px" },
      nodeExpandSecretRef: { name: "token", namespace: "px" },
    },
    { annotations: { [SECRET]: "token", [SECRET_NAMESPACE]: "px" } },
  ],
  [
    "Portworx: half a secret is none",
    { portworxVolume: { volumeID: "7" } },
    { driver: "pxd.portworx.com", volumeHandle: "7" },
    { annotations: { [SECRET]: "token" } },
  ],
];

describe("a PersistentVolume", () => {
  for (const [title, source, csi, metadata] of VOLUMES) {
    test(`of ${title}`, () => {
      const spec = persistent({ ...source, accessModes: ["ReadWriteOnce"], volumeMode: "Block" }, metadata);
      const { claimRef } = source as PersistentVolumeSpec;

      const translation = translate(spec);

      expect(translation).toStrictEqual({
        kind: "translated",
        spec: {
          kind: "persistent",
          volume: {
            metadata: { name: "pv-1", ...metadata },
            spec: { ...(claimRef && { claimRef }), accessModes: ["ReadWriteOnce"], volumeMode: "Block", csi },
          },
          readOnly: true,
          migrated: "volume",
        },
      });
    });

    test(`of ${title}: the cache keeps all that this takes`, () => {
      const spec = persistent(source, { uid: "u", labels: {}, ...metadata });
      const volume = (spec as { volume: PersistentVolume }).volume;
      const trimmed = trimPersistentVolume(volume);

      expect(translate({ ...spec, volume: trimmed } as VolumeSpec)).toMatchObject({
        spec: { volume: { spec: { csi } } },
      });
    });
  }

  for (const [before, after] of [
    [["ReadWriteMany"], ["ReadWriteOnce"]],
    [["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteOnce"]],
    [["ReadWriteMany", "ReadOnlyMany"], ["ReadWriteOnce"]],
    [["ReadOnlyMany"], ["ReadOnlyMany"]],
    [["ReadWriteOncePod"], ["ReadWriteOnce"]],
    [["ReadOnlyMany", "ReadWriteOncePod"], ["ReadOnlyMany"]],
    [[], ["ReadWriteOnce"]],
    [undefined, undefined],
  ] as const) {
    test(`of GCE with the modes ${JSON.stringify(before)} gets ${JSON.stringify(after)}`, () => {
      const modes = before && { accessModes: before };
      const volume = outcome(persistent({ gcePersistentDisk: { pdName: "d" }, ...modes }));

      expect(volume).toHaveProperty("spec.csi.driver", "pd.csi.storage.gke.io");
      expect((volume as PersistentVolume).spec?.accessModes).toEqual(after);
    });
  }

  for (const source of [
    { awsElasticBlockStore: { volumeID: "vol-1" } },
    { cinder: { volumeID: "v" } },
    { azureDisk: { diskName: "d", diskURI: DISK } },
    { azureFile: { shareName: "s", secretName: "k", secretNamespace: "n" } },
    { vsphereVolume: { volumePath: "p" } },
    { portworxVolume: { volumeID: "v" } },
  ]) {
    test(`of ${Object.keys(source)[0] ?? ""} keeps its modes as they are`, () => {
      const accessModes = ["ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"];

      expect(outcome(persistent({ ...source, accessModes }))).toMatchObject({ spec: { accessModes } });
    });
  }

  test("is not changed itself: the cache shares it", () => {
    const spec = persistent({ gcePersistentDisk: { pdName: "d" }, accessModes: ["ReadWriteMany"] });
    const before = structuredClone(spec);

    translate(spec);

    expect(spec).toEqual(before);
  });
});

/** Rows of `inline source -> name, access modes, CSI source`. */
const INLINE: readonly (readonly [source: object, name: string, mode: string, csi: object])[] = [
  [
    { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1", partition: 1 } },
    "ebs.csi.aws.com-vol-1",
    "ReadWriteOnce",
    { driver: "ebs.csi.aws.com", volumeHandle: "vol-1", volumeAttributes: { partition: "1" } },
  ],
  [
    { gcePersistentDisk: { pdName: "d" } },
    "pd.csi.storage.gke.io-d",
    "ReadWriteOnce",
    {
      driver: "pd.csi.storage.gke.io",
      volumeHandle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
      volumeAttributes: { partition: "" },
    },
  ],
  [
    { gcePersistentDisk: { pdName: "d", readOnly: true, fsType: "xfs", partition: 1 } },
    "pd.csi.storage.gke.io-d",
    "ReadOnlyMany",
    {
      driver: "pd.csi.storage.gke.io",
      volumeHandle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
      readOnly: true,
      fsType: "xfs",
      volumeAttributes: { partition: "1" },
    },
  ],
  [
    { cinder: { volumeID: "v", readOnly: true } },
    "cinder.csi.openstack.org-v",
    "ReadWriteOnce",
    { driver: "cinder.csi.openstack.org", volumeHandle: "v", readOnly: true },
  ],
  [
    { azureDisk: { diskName: "d", diskURI: DISK, cachingMode: "", fsType: "ext4" } },
    DISK,
    "ReadWriteOnce",
    {
      driver: "disk.csi.azure.com",
      volumeHandle: DISK,
      fsType: "ext4",
      volumeAttributes: { kind: "Managed", fstype: "ext4" },
    },
  ],
  [
    { azureDisk: { diskName: "d", diskURI: DISK, cachingMode: "None", kind: "Managed", readOnly: true } },
    DISK,
    "ReadWriteOnce",
    {
      driver: "disk.csi.azure.com",
      volumeHandle: DISK,
      readOnly: true,
      volumeAttributes: { kind: "Managed", cachingmode: "None" },
    },
  ],
  [
    { azureFile: { shareName: "s", secretName: "azure-storage-account-acct-secret" } },
    "#acct#s#data#shop",
    "ReadWriteMany",
    {
      driver: "file.csi.azure.com",
      volumeHandle: "#acct#s#data#shop",
      volumeAttributes: { sharename: "s" },
      nodeStageSecretRef: { name: "azure-storage-account-acct-secret", namespace: "shop" },
    },
  ],
  [
    { vsphereVolume: { volumePath: "[ds] a.vmdk", storagePolicyName: "gold" } }, // crashes upstream
    "csi.vsphere.vmware.com-[ds] a.vmdk",
    "ReadWriteOnce",
    {
      driver: "csi.vsphere.vmware.com",
      volumeHandle: "[ds] a.vmdk",
      volumeAttributes: { storagepolicyname: "gold" },
    },
  ],
  [
    { portworxVolume: { volumeID: "7" } },
    "pxd.portworx.com-7",
    "ReadWriteOnce",
    { driver: "pxd.portworx.com", volumeHandle: "7" },
  ],
  [
    { portworxVolume: { volumeID: "7", readOnly: true } },
    "pxd.portworx.com-7",
    "ReadOnlyMany",
    { driver: "pxd.portworx.com", volumeHandle: "7" },
  ],
];

describe("an inline volume", () => {
  for (const [source, name, mode, csi] of INLINE) {
    test(`of ${JSON.stringify(source)} becomes ${name}, a filesystem for ${mode}`, () => {
      expect(translate(inline(source), "shop")).toStrictEqual({
        kind: "translated",
        spec: {
          kind: "persistent",
          volume: { metadata: { name }, spec: { accessModes: [mode], volumeMode: "Filesystem", csi } },
          readOnly: false,
          migrated: "inline",
        },
      });
    });
  }

  test("of Azure files, in a pod of no namespace, has its secret in default", () => {
    expect(outcome(inline({ azureFile: { shareName: "s", secretName: "k" } }))).toMatchObject({
      metadata: { name: "#k#s#data#default" },
      spec: { csi: { nodeStageSecretRef: { name: "k", namespace: "default" } } },
    });
  });

  test("and a PersistentVolume of one EBS disk are the same volume, those of a GCE disk are not", () => {
    const handleOf = (spec: VolumeSpec) => (outcome(spec) as PersistentVolume).spec?.csi?.volumeHandle;
    const ebs = { awsElasticBlockStore: { volumeID: "vol-1" } };
    const gce = { gcePersistentDisk: { pdName: "d" } };

    expect(handleOf(inline(ebs))).toBe(handleOf(persistent(ebs)));
    expect(handleOf(inline(gce))).not.toBe(handleOf(persistent(gce, { labels: { [ZONE]: "us-east1-b" } })));
  });
});

describe("what cannot be translated says why", () => {
  for (const [spec, message] of [
    [
      persistent({ awsElasticBlockStore: { volumeID: "aws://us-east-1a/bad/id" } }),
      "awsElasticBlockStore has the volumeID aws://us-east-1a/bad/id, which names no EBS volume",
    ],
    [
      inline({ awsElasticBlockStore: { volumeID: "aws://us-east-1a/a/vol-1" } }),
      "awsElasticBlockStore has the volumeID aws://us-east-1a/a/vol-1, which names no EBS volume",
    ],
    [
      persistent({ awsElasticBlockStore: { volumeID: "aws://vol-1" } }), // the id stands where the zone belongs
      "awsElasticBlockStore has the volumeID aws://vol-1, which names no EBS volume",
    ],
    [persistent({ awsElasticBlockStore: {} }), "awsElasticBlockStore has no volumeID"],
    [inline({ cinder: "v" }), "cinder has no volumeID"],
    [inline({ vsphereVolume: { volumePath: 7 } }), "vsphereVolume has no volumePath"],
    [inline({ portworxVolume: [] }), "portworxVolume has no volumeID"],
    [inline({ gcePersistentDisk: { pdName: "" } }), "gcePersistentDisk has no pdName"],
    [
      persistent({ gcePersistentDisk: { pdName: "d" } }, { labels: { [ZONE]: "us-east1-b__us-west1-a" } }),
      "gcePersistentDisk has the zones us-east1-b, us-west1-a, which are not of one region",
    ],
    [
      persistent({ gcePersistentDisk: { pdName: "d" } }, { labels: { [ZONE]: "zone1__zone2" } }),
      "gcePersistentDisk has the zones zone1, zone2, which are not of one region",
    ],
    [
      persistent({ gcePersistentDisk: { pdName: "d" } }, { labels: { [ZONE]: "us-east1-b__zone2" } }),
      "gcePersistentDisk has the zones us-east1-b, zone2, which are not of one region",
    ],
    [
      persistent({ azureDisk: { diskName: "d", diskURI: DISK, kind: "Dedicated" } }),
      'azureDisk is of the kind "Dedicated", and the CSI driver serves only Managed',
    ],
    [
      inline({ azureDisk: { diskName: "d", diskURI: DISK, kind: "" } }),
      'azureDisk is of the kind "", and the CSI driver serves only Managed',
    ],
    [persistent({ azureDisk: { diskName: "d" } }), "azureDisk has no diskURI"],
    [
      persistent({ azureFile: { shareName: "s", secretName: "k" } }),
      "azureFile has neither a secretNamespace nor a claim to take it from",
    ],
    [
      persistent({ azureFile: { shareName: "s", secretName: "k" }, claimRef: { name: "c", uid: "u" } }),
      "azureFile has neither a secretNamespace nor a claim to take it from",
    ],
    [inline({ azureFile: { secretName: "k" } }), "azureFile has no shareName"],
    [inline({ azureFile: { shareName: "s" } }), "azureFile has no secretName"],
  ] as const) {
    test(message, () => expect(translate(spec)).toEqual({ kind: "untranslatable", message }));
  }
});

describe("everything else is left as it is", () => {
  for (const spec of [
    persistent({ csi: { driver: "csi.example.com", volumeHandle: "v" } }),
    persistent({ iscsi: { iqn: "i", lun: 0, targetPortal: "t" } }),
    persistent({ rbd: { image: "i", monitors: [] } }),
    persistent({ cephfs: { monitors: [] } }),
    persistent({ awsElasticBlockStore: null, nfs: { server: "s", path: "/" } }),
    inline({ csi: { driver: "csi.example.com" } }),
    inline({ fc: { wwids: ["1"] } }),
    inline({}),
  ]) {
    test(JSON.stringify(spec.volume), () => {
      const translation = translate(spec);

      expect(translation.kind === "translated" && translation.spec).toBe(spec);
    });
  }

  test("what was translated stays so", () => {
    const once = translate(inline({ cinder: { volumeID: "v" } }));

    expect(once.kind === "translated" && translate(once.spec)).toEqual(once);
  });
});

test("no source, whatever stands in its fields, makes translation throw or give a volume without a handle", () => {
  const fields = ["volumeID", "pdName", "diskURI", "kind", "cachingMode", "fsType", "partition", "readOnly"];
  const more = ["shareName", "secretName", "secretNamespace", "volumePath", "storagePolicyName"];
  const rubbish = fc.oneof(fc.anything(), fc.string(), fc.constantFrom("aws://", "Managed", "a__b", null));
  const source = fc.oneof(rubbish, fc.dictionary(fc.constantFrom(...fields, ...more), rubbish));
  const kind = fc.constantFrom(
    ...["awsElasticBlockStore", "azureDisk", "azureFile", "cinder"],
    ...["gcePersistentDisk", "portworxVolume", "vsphereVolume"],
  );
  const notes = fc.dictionary(
    fc.constantFrom(ZONE, BETA_ZONE, SECRET, SECRET_NAMESPACE, RESOURCE_GROUP),
    rubbish,
  );
  fc.assert(
    fc.property(kind, source, notes, rubbish, (kind, source, notes, accessModes) => {
      const metadata = { labels: notes, annotations: notes };
      for (const spec of [
        persistent({ [kind]: source, accessModes }, metadata),
        inline({ [kind]: source }),
      ]) {
        const volume = outcome(spec, "shop");
        if (typeof volume === "string" || !volume.spec?.csi) continue;
        expect(typeof volume.spec.csi.volumeHandle).toBe("string");
        expect(volume.spec.csi.volumeHandle).not.toBe("");
      }
    }),
    { numRuns: 500 },
  );
});
