import type { Volume } from "kubernetes-types/core/v1.js";
import { expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import type { VolumeSketch } from "../sim/cluster.ts";
import { createFcPlugin } from "../volumes/plugins/fc.ts";
import { createIscsiPlugin } from "../volumes/plugins/iscsi.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";

/** Scenarios 108 to 117, 120 and 123 to 125 of the specification, from outside. */

const ISCSI: Volume = {
  name: "lun",
  iscsi: { targetPortal: "10.0.0.9:3260", iqn: "iqn.2025-01.example:store", lun: 1 },
};
const LUN = "kubernetes.io/iscsi/10.0.0.9:3260:iqn.2025-01.example:store:1";

const withPlugins = (volume: Volume) =>
  given({
    nodes: ["n1"],
    pods: { web: { on: "n1", inline: [volume] } },
    plugins: [createIscsiPlugin(), createFcPlugin()],
  });

/** A PersistentVolume of a source that is translated, used by a pod on n1. */
const migrated = (volumes: Readonly<Record<string, VolumeSketch>>) =>
  given({
    nodes: ["n1"],
    volumes,
    pods: Object.fromEntries(
      Object.keys(volumes).map((label) => [`pod-${label}`, { on: "n1", uses: [label] }]),
    ),
  });

const posts = (world: AttachDetachWorld) => world.requests().filter((line) => line.startsWith("POST"));

test("108, 109: an iSCSI volume is listed at once, without an attachment, and goes when it is unmounted", async () => {
  const world = await withPlugins(ISCSI);
  expect(world.requests()).toEqual([`PATCH node n1 [${LUN}]`]);
  expect(world.eventsOf("web", "SuccessfulAttachVolume").length).toBe(1);
  await world.setInUse("n1", [LUN]);
  await world.advance(10 * 60_000);
  expect(world.requests().length).toBe(1);

  await world.removePod("web");
  await world.settle();
  expect(world.volumesAttached("n1")).toEqual([LUN]);
  await world.setInUse("n1", []);
  await world.settle();

  expect(world.volumesAttached("n1")).toEqual([]);
});

test("110: a Fibre Channel volume goes by its identifiers", async () => {
  const world = await withPlugins({ name: "disk", fc: { wwids: ["3600508b400105e21"] } });

  expect(world.volumesAttached("n1")).toEqual(["kubernetes.io/fc/[3600508b400105e21]"]);
});

test("111: two ways to write one EBS volume are one volume", async () => {
  const ebs = (volumeID: string): VolumeSketch => ({
    driver: "ebs.csi.aws.com",
    handle: "vol-1",
    source: { awsElasticBlockStore: { volumeID } },
  });
  const world = await migrated({ url: ebs("aws://us-east-1a/vol-1"), plain: ebs("vol-1") });

  expect(posts(world)).toEqual(["POST va url@n1"]);
  expect(world.attachedOf("n1").map(({ name }) => name)).toEqual(["kubernetes.io/csi/ebs.csi.aws.com^vol-1"]);
});

for (const [number, what, sketch] of [
  ["112", "an EBS volume with a name that is none", { awsElasticBlockStore: { volumeID: "aws://a/bad/id" } }],
  [
    "113",
    "an Azure disk of its own account",
    { azureDisk: { diskName: "d", diskURI: "https://a/d.vhd", kind: "Dedicated" } },
  ],
  ["117", "a RADOS image", { rbd: { monitors: ["10.0.0.1:6789"], image: "i" } }],
] as const) {
  test(`${number}: ${what} is left alone`, async () => {
    const world = await migrated({ v: { source: structuredClone(sketch) as object } });

    await world.advance(60_000);

    expect(world.requests()).toEqual([]);
    expect(world.eventsOf("pod-v", "FailedAttachVolume")).toEqual([]);
  });
}

test("113: an Azure disk is attached by its URI", async () => {
  const diskURI = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d";
  const azureDisk = { diskName: "d", diskURI, kind: "Managed" };
  const world = await migrated({
    v: { driver: "disk.csi.azure.com", handle: diskURI, source: { azureDisk } },
  });

  expect(world.volumesAttached("n1")).toEqual(["v"]);
});

test("115: a Cinder volume needs no CSINode to be attached", async () => {
  const world = await migrated({
    v: { driver: "cinder.csi.openstack.org", handle: "c-1", source: { cinder: { volumeID: "c-1" } } },
  });

  expect(world.attachmentOf("v", "n1")?.spec).toEqual({
    attacher: "cinder.csi.openstack.org",
    nodeName: "n1",
    source: { persistentVolumeName: "pv-v" },
  });
});

test("116: an inline vSphere volume keeps its storage policy", async () => {
  const volumePath = "[store] disk.vmdk";
  const inline = [{ name: "disk", vsphereVolume: { volumePath, storagePolicyName: "gold" } }];
  const disk = {
    driver: "csi.vsphere.vmware.com",
    handle: volumePath,
    claim: "missing",
    volume: "missing",
  } as const;
  const world = await given({
    nodes: ["n1"],
    volumes: { disk },
    pods: { web: { on: "n1", inline } },
  });

  expect(world.volumesAttached("n1")).toEqual(["disk"]);
  const name = world.labels.attachmentName("disk", "n1");
  const csi = world.read(volumeAttachments, { name })?.spec.source.inlineVolumeSpec?.csi;
  expect(csi?.volumeAttributes?.["storagepolicyname"]).toBe("gold");
});

const DURATIONS = "storage_operation_duration_seconds_count";
const CSI = { volume_plugin: "kubernetes.io/csi:csi.example.com" };

test("120: a plugin that throws has failed like any other, hurts no other volume, and is tried again", async () => {
  let throwing = true;
  const attempt = (): void => {
    if (throwing) throw new TypeError("undefined is not a function");
  };
  const plugin: AttachablePlugin = {
    ...createIscsiPlugin(),
    attach: () => {
      attempt();
      return Promise.resolve("/dev/sdb");
    },
    detach: () => {
      attempt();
      return Promise.resolve();
    },
  };
  const world = await given({
    nodes: ["n1"],
    pods: { web: { on: "n1", inline: [ISCSI] }, other: { on: "n1", uses: ["v"] } },
    plugins: [plugin],
  });
  expect(world.eventsOf("web", "FailedAttachVolume")[0]?.message).toContain("undefined is not a function");
  expect(world.volumesAttached("n1")).toEqual(["v"]);

  throwing = false;
  await world.advance(2_000);
  expect(world.volumesAttached("n1")).toContain(LUN);
  throwing = true;
  await world.removePod("web");
  await world.advance(1_000);
  throwing = false;
  await world.advance(10_000);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
  expect(world.controller.controller.report({ node: "n1" }).volumes.length).toBe(1);
});

test("123: an attach and a detach are measured with upstream's labels", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });
  await world.removePod("web");
  await world.settle();

  const labels = { ...CSI, status: "success", migrated: "false" };
  expect(await world.metric(DURATIONS, { ...labels, operation_name: "volume_attach" })).toBe(1);
  expect(await world.metric(DURATIONS, { ...labels, operation_name: "volume_detach" })).toBe(1);
});

test("123: a failure is measured as one, a migrated volume as such", async () => {
  const disk = {
    driver: "ebs.csi.aws.com",
    handle: "vol-1",
    source: { awsElasticBlockStore: { volumeID: "vol-1" } },
  };
  const world = await given({ nodes: ["n1"], volumes: { v: {}, disk } });
  world.failNext("POST va v@n1", 403);

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.createPod("other", { on: "n1", uses: ["disk"] });
  await world.settle();

  const attach = { operation_name: "volume_attach" };
  expect(await world.metric(DURATIONS, { ...CSI, ...attach, status: "fail-unknown" })).toBe(1);
  const moved = { volume_plugin: "kubernetes.io/csi:ebs.csi.aws.com", migrated: "true", status: "success" };
  expect(await world.metric(DURATIONS, { ...attach, ...moved })).toBe(1);
});

test("124, 125: volumes are counted as wanted and attached, once stock was taken", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } }, started: false });
  world.held.add("nodes");
  world.startController();
  await world.settle();
  const total = "attachdetach_controller_total_volumes";
  expect(await world.metric(total)).toBeUndefined();
  expect(await world.metric("storage_count_attachable_volumes_in_use")).toBeUndefined();

  world.held.clear();
  await world.settle();

  const plugin = { plugin_name: "kubernetes.io/csi:csi.example.com" };
  expect(await world.metric(total, { ...plugin, state: "desired_state_of_world" })).toBe(1);
  expect(await world.metric(total, { ...plugin, state: "actual_state_of_world" })).toBe(1);
  expect(await world.metric("storage_count_attachable_volumes_in_use", { node: "n1", ...CSI })).toBe(1);
});
