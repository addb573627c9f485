import { describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import {
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

/** Scenarios of the driver's specification, by their numbers, that need no real device: on a node. Those that do are in test/e2e. */

const capability = mountCapability();
const imagePath = (id: string) => `${STATE}/volumes/${id}/image.raw`;
describe("stage and publish", () => {
  const stage = ({ node }: World, volumeId: string, other: object = {}) =>
    node.nodeStageVolume({ volumeId, stagingTargetPath: STAGING, volumeCapability: capability, ...other });
  const publish = ({ node }: World, volumeId: string, other: object = {}) =>
    node.nodePublishVolume({
      volumeId,
      stagingTargetPath: STAGING,
      targetPath: TARGET,
      volumeCapability: capability,
      ...other,
    });

  test("16: what is written survives unpublish, unstage, a restart and a new stage", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    world.host.writeData(TARGET, "diary", "precious");
    await released(world, volumeId);

    const after = await world.restart();
    await published(after, volumeId);

    expect(after.host.readData(TARGET, "diary")).toBe("precious");
  });

  test.each([
    ["a partition table", { kind: "other", what: "a gpt partition table" }],
    ["another filesystem", { kind: "filesystem", type: "btrfs" }],
  ] as const)("18: an image with %s is never formatted, and no device is left", async (_, content) => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    Object.assign(world.host.image(imagePath(volumeId)), { content });

    expect(await codeOf(staged(world, volumeId))).toBe("FAILED_PRECONDITION");
    expect(world.host.image(imagePath(volumeId)).content).toEqual(content);
    expect(await world.host.loops.list()).toEqual([]);
  });

  test("19, 22, 24: each step needs the one before", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");

    expect(await codeOf(stage(world, volumeId))).toBe("FAILED_PRECONDITION");
    expect(await codeOf(publish(world, volumeId))).toBe("FAILED_PRECONDITION");
    await staged(world, volumeId);
    expect(await codeOf(publish(world, volumeId, { stagingTargetPath: "" }))).toBe("FAILED_PRECONDITION");
    await publish(world, volumeId);
    expect(await codeOf(world.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING }))).toBe(
      "FAILED_PRECONDITION",
    );
  });

  test("staged with other arguments: another capability exists already, another path is refused", async () => {
    const world = await given();
    world.host.makePath("/kubelet/elsewhere");
    const volumeId = await createdVolume(world, "a");
    await staged(world, volumeId);

    expect(
      await codeOf(
        stage(world, volumeId, { volumeCapability: mountCapability({ mountFlags: ["noatime"] }) }),
      ),
    ).toBe("ALREADY_EXISTS");
    expect(await codeOf(stage(world, volumeId, { stagingTargetPath: "/kubelet/elsewhere" }))).toBe(
      "FAILED_PRECONDITION",
    );
  });

  test("20: a read-only target beside a writable one", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    await publish(world, volumeId, { targetPath: "/kubelet/pods/reader", readonly: true });

    world.host.writeData(TARGET, "diary", "precious");

    expect(() => world.host.writeData("/kubelet/pods/reader", "x", "y")).toThrow("EROFS");
    expect(world.host.readData("/kubelet/pods/reader", "diary")).toBe("precious");
    expect(await codeOf(publish(world, volumeId, { readonly: true }))).toBe("ALREADY_EXISTS");
  });

  test("23: a target in use stays and is reported; once free it goes", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    world.host.busy(TARGET, true);

    expect(await codeOf(world.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET }))).toBe("INTERNAL");
    world.host.busy(TARGET, false);
    expect(await codeOf(world.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET }))).toBe("OK");
    expect(await world.host.files.stat(TARGET)).toBeUndefined();
  });

  test("40: after a reboot everything can be taken down, and staged again", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    world.host.writeData(TARGET, "diary", "precious");
    world.host.reboot();

    const after = await world.restart();

    expect(await codeOf(publish(after, volumeId))).toBe("FAILED_PRECONDITION");
    await after.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET });
    expect(await after.host.files.stat(TARGET)).toBeUndefined();
    await after.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING });
    await published(after, volumeId);
    expect(after.host.readData(TARGET, "diary")).toBe("precious");
  });

  test("a publish context of another volume is a wrong device", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await world.controller.controllerPublishVolume({
      volumeId,
      nodeId: "node-1",
      volumeCapability: capability,
    });

    expect(await codeOf(stage(world, volumeId, { publishContext: { volume: "vol-x" } }))).toBe(
      "FAILED_PRECONDITION",
    );
  });

  test("unstaged when no other node of the pool has it, the device goes; otherwise it stays", async () => {
    const one = await given({ nodes: ["node-2"] });
    const two = await given({ nodeId: "node-2", serves: "node" }, one.host);
    one.host.makePath("/kubelet/stage2");
    const readers = mountCapability({ mode: Mode.MULTI_NODE_READER_ONLY });
    const volumeId = await createdVolume(one, "a", { capability: readers });
    for (const nodeId of ["node-1", "node-2"])
      await one.controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: readers });
    await stage(one, volumeId, { volumeCapability: readers });
    await stage(two, volumeId, { volumeCapability: readers, stagingTargetPath: "/kubelet/stage2" });

    await one.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING });

    expect(await one.host.loops.list()).toHaveLength(1);
    await two.node.nodeUnstageVolume({ volumeId, stagingTargetPath: "/kubelet/stage2" });
    expect(await one.host.loops.list()).toEqual([]);
  });
});
