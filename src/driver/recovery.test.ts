import { describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { nodeDirectoryName } from "./context.ts";
import {
  blockCapability,
  codeOf,
  createdVolume,
  given,
  mountCapability,
  published,
  released,
  staged,
  STAGING,
  STATE,
  TARGET,
  type World,
} from "./stage.testing.ts";

/** Devices and mounts that no record knows, and what several processes of one pool leave each other. */

const nodeRecord = (volumeId: string, nodeId = "node-1") =>
  `${STATE}/node/${nodeDirectoryName(nodeId)}/${volumeId}.json`;

async function forgotten(world: World, volumeId: string): Promise<World> {
  await world.host.files.removeFile(nodeRecord(volumeId));
  return world.restart();
}

test("a device without a record and without a use is let go; somebody else's stays", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a");
  await world.host.images.create("/kubelet/foreign", 4_096n, { thick: false });
  const foreign = await world.host.loops.attach("/kubelet/foreign", { readonly: false });
  await world.host.loops.attach(`${STATE}/volumes/${volumeId}/image.raw`, { readonly: false });

  await world.restart();

  expect((await world.host.loops.list()).map(({ path }) => path)).toEqual([foreign.path]);
});

test("a mounted volume whose record is lost is kept with its data, and can be unpublished, unstaged and deleted", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a");
  await published(world, volumeId);
  world.host.writeData(TARGET, "diary", "precious");

  const after = await forgotten(world, volumeId);

  expect(after.host.readData(TARGET, "diary")).toBe("precious");
  expect(await codeOf(after.controller.deleteVolume({ volumeId }))).toBe("FAILED_PRECONDITION");
  expect(await codeOf(after.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING }))).toBe(
    "FAILED_PRECONDITION",
  );
  await released(after, volumeId);
  expect(await after.host.mounts.list()).toEqual([]);
  expect(await after.host.loops.list()).toEqual([]);
  await after.controller.deleteVolume({ volumeId });
});

test("staged again with its own capability, an adopted volume is as if its record had never been lost", async () => {
  const world = await given();
  const capability = mountCapability({ mountFlags: ["noatime"] });
  const volumeId = await createdVolume(world, "a", { capability });
  await staged(world, volumeId, { capability });

  const after = await forgotten(world, volumeId);

  await published(after, volumeId, { capability });
  expect(await after.host.loops.list()).toHaveLength(1);
});

test("a raw device bound into a pod is not detached under it, and can be taken down", async () => {
  const world = await given();
  const capability = blockCapability();
  const volumeId = await createdVolume(world, "a", { capability });
  await published(world, volumeId, { capability });

  const after = await forgotten(world, volumeId);

  expect(await after.host.loops.list()).toHaveLength(1);
  expect((await after.host.files.stat(TARGET))?.kind).toBe("block");
  await released(after, volumeId);
  expect(await after.host.loops.list()).toEqual([]);
  expect(await after.host.files.stat(TARGET)).toBeUndefined();
});

test("what another node of the pool has staged is not adopted by this one", async () => {
  const one = await given({ nodes: ["node-2"] });
  const volumeId = await createdVolume(one, "a");
  await staged(one, volumeId);

  const two = await given({ nodeId: "node-2", serves: "node" }, one.host);

  expect(two.driver.counts().staged).toBe(0);
  expect(await one.host.loops.list()).toHaveLength(1);
});

test("a controller that died with a filesystem frozen: unstage thaws it first, or its device would be held for ever", async () => {
  const one = await given({ nodes: ["node-2"] });
  const two = await given({ nodeId: "node-2", serves: "node" }, one.host);
  const volumeId = await createdVolume(one, "a");
  await one.controller.controllerPublishVolume({
    volumeId,
    nodeId: "node-2",
    volumeCapability: mountCapability(),
  });
  await two.node.nodeStageVolume({
    volumeId,
    stagingTargetPath: STAGING,
    volumeCapability: mountCapability(),
  });
  await one.host.mounts.freeze(STAGING);

  await two.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING });

  expect(one.host.frozen()).toEqual([]);
  expect(await one.host.loops.list()).toEqual([]);
});

test("an ephemeral volume is its node's: a controller that starts beside it neither sees nor removes it", async () => {
  const one = await given({ nodes: ["node-2"] });
  const two = await given({ nodeId: "node-2", serves: "node" }, one.host);
  const pod = { volumeId: "csi-1", targetPath: TARGET };
  await two.node.nodePublishVolume({
    ...pod,
    volumeCapability: mountCapability(),
    volumeContext: { "csi.storage.k8s.io/ephemeral": "true" },
  });
  two.host.writeData(TARGET, "scratch", "x");

  const next = await one.restart();

  expect(next.driver.counts().volumes).toBe(0);
  expect(two.host.readData(TARGET, "scratch")).toBe("x");
  await two.node.nodeUnpublishVolume(pod);
  expect(await two.host.loops.list()).toEqual([]);
});

test("two nodes read one raw device: the first to go leaves the other its read-only device", async () => {
  const one = await given({ nodes: ["node-2"] });
  const two = await given({ nodeId: "node-2", serves: "node" }, one.host);
  const capability = blockCapability(Mode.MULTI_NODE_MULTI_WRITER);
  const volumeId = await createdVolume(one, "a", { capability });
  const up = async (world: World, nodeId: string, targetPath: string) => {
    await one.controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: capability });
    const call = { volumeId, stagingTargetPath: STAGING, volumeCapability: capability };
    await world.node.nodeStageVolume(call);
    await world.node.nodePublishVolume({ ...call, targetPath, readonly: true });
  };
  await up(one, "node-1", "/kubelet/pods/one");
  await up(two, "node-2", "/kubelet/pods/two");

  await one.node.nodeUnpublishVolume({ volumeId, targetPath: "/kubelet/pods/one" });
  await one.restart({ nodes: ["node-2"] });

  expect((await one.host.loops.list()).filter(({ readonly }) => readonly)).toHaveLength(1);
  await two.node.nodeUnpublishVolume({ volumeId, targetPath: "/kubelet/pods/two" });
  expect((await one.host.loops.list()).filter(({ readonly }) => readonly)).toHaveLength(0);
});

describe("after a reboot nothing is staged, and the volume can be detached without an unstage", () => {
  const detach = (world: World, volumeId: string) =>
    codeOf(world.controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" }));

  for (const [access, capability] of [
    ["mount", mountCapability()],
    ["block", blockCapability()],
  ] as const) {
    test(`a ${access} volume that was staged only, once the driver has started`, async () => {
      const world = await given();
      const volumeId = await createdVolume(world, "a", { capability });
      await staged(world, volumeId, { capability });
      expect(await detach(world, volumeId)).toBe("FAILED_PRECONDITION");
      world.host.reboot();

      const after = await world.restart();

      expect(await detach(after, volumeId)).toBe("OK");
      await after.controller.deleteVolume({ volumeId });
      expect(await after.host.files.stat(nodeRecord(volumeId))).toBeUndefined();
    });

    test(`a ${access} volume that a pod had, once the pod's target is gone, and not before`, async () => {
      const world = await given();
      const volumeId = await createdVolume(world, "a", { capability });
      await published(world, volumeId, { capability });
      world.host.reboot();

      const after = await world.restart();

      expect(await detach(after, volumeId)).toBe("FAILED_PRECONDITION");
      await after.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET });
      expect(await detach(after, volumeId)).toBe("OK");
      await after.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING });
    });
  }

  test("a volume that is staged stays so when its last pod goes", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);

    await world.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET });

    expect(await detach(world, volumeId)).toBe("FAILED_PRECONDITION");
    expect(await world.host.loops.list()).toHaveLength(1);
  });
});
