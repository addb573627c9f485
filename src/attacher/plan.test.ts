import { describe, expect, test } from "vitest";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import { finalizerOf, NODE_ID_ANNOTATION } from "./names.ts";
import { planAttachment, type AttachmentView } from "./plan.ts";
import { repairedHandle } from "./resync.ts";

const GCE = "pd.csi.storage.gke.io";

function view({
  driver = "csi.test",
  source = { persistentVolumeName: "pv1" },
  deleting = false,
  volume,
}: {
  driver?: string;
  source?: object;
  deleting?: boolean;
  volume?: PersistentVolume;
} = {}): AttachmentView {
  const attachment: VolumeAttachment = {
    metadata: {
      name: "va1",
      uid: "u1",
      finalizers: [finalizerOf(driver)],
      annotations: { [NODE_ID_ANNOTATION]: "id-n1" },
      ...(deleting && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    },
    spec: { attacher: driver, nodeName: "n1", source },
    status: { attached: false },
  };
  return {
    attachment,
    volume,
    node: { metadata: { name: "n1" }, spec: { drivers: [{ name: driver, nodeID: "id-n1" }] } },
    driver: {
      name: driver,
      capabilities: {
        publishes: true,
        publishReadonly: true,
        singleNodeMultiWriter: false,
        listsPublishedNodes: false,
      },
    },
    defaultFsType: "",
    forced: false,
    holders: [],
    twins: [],
    done: {},
  };
}

const CSI = { accessModes: ["ReadWriteOnce"], csi: { driver: "csi.test", volumeHandle: "v" } };

describe("an attachment that cannot be understood is refused, whichever way it goes", () => {
  for (const [title, source] of [
    ["19, 47: no source", {}],
    ["20, 47: two sources", { persistentVolumeName: "pv1", inlineVolumeSpec: CSI }],
    ["an inline volume without CSI", { inlineVolumeSpec: { nfs: { server: "s", path: "/" } } }],
    ["a source that is no object", "pv1"],
  ] as const) {
    for (const deleting of [false, true]) {
      test(`${title}, ${deleting ? "detach" : "attach"}`, () => {
        const step = planAttachment(view({ source: source as object, deleting }));

        expect(step).toMatchObject({ kind: "refuse", error: { code: "BadSource" } });
      });
    }
  }
});

test("30: an in-tree GCE disk is published by its translated handle, and let go by the same", () => {
  const volume: PersistentVolume = {
    metadata: {
      name: "pv1",
      finalizers: [finalizerOf(GCE)],
      labels: { "topology.kubernetes.io/zone": "us-central1-a" },
    },
    spec: { accessModes: ["ReadWriteOnce"], gcePersistentDisk: { pdName: "disk-1" } },
  };
  const volumeId = "projects/UNSPECIFIED/zones/us-central1-a/disks/disk-1";
  const recorded = view({ driver: GCE, volume });
  recorded.attachment.metadata.annotations!["mooring.dev/volume-handle"] = volumeId;

  expect(planAttachment(recorded)).toMatchObject({
    kind: "publish",
    migrated: true,
    request: { volumeId, nodeId: "id-n1", volumeContext: { partition: "" } },
  });
  expect(planAttachment(view({ driver: GCE, volume, deleting: true }))).toMatchObject({
    kind: "unpublish",
    migrated: true,
    request: { volumeId },
  });
});

test("a volume of another driver is not attached, but one that somehow was is let go", () => {
  const volume: PersistentVolume = {
    metadata: { name: "pv1", finalizers: [finalizerOf("csi.test")] },
    spec: { ...CSI, csi: { driver: "other.test", volumeHandle: "v" } },
  };

  expect(planAttachment(view({ volume }))).toMatchObject({ kind: "refuse" });
  expect(planAttachment(view({ volume, deleting: true }))).toMatchObject({ kind: "unpublish" });
});

for (const [handle, nodeId, repaired] of [
  ["projects/UNSPECIFIED/zones/z/disks/d", "projects/p/zones/z/instances/i", "projects/p/zones/z/disks/d"],
  [
    "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
    "projects/p/zones/z/instances/i",
    "projects/p/zones/z/disks/d",
  ],
  [
    "projects/UNSPECIFIED/regions/r/disks/d",
    "projects/p/zones/z/instances/i",
    "projects/p/regions/r/disks/d",
  ],
  ["projects/q/zones/y/disks/d", "projects/p/zones/z/instances/i", "projects/q/zones/y/disks/d"],
  ["vol-1", "i-1", "vol-1"],
] as const) {
  test(`the handle ${handle} on ${nodeId} is ${repaired} in the driver's list`, () => {
    expect(repairedHandle(GCE, handle, nodeId)).toBe(repaired);
    expect(repairedHandle("ebs.csi.aws.com", handle, nodeId)).toBe(handle);
  });
}
