import { describe, expect, test } from "vitest";
import {
  blockCapability,
  codeOf,
  createdVolume,
  given,
  mountCapability,
  published,
  staged,
  STAGING,
  STATE,
  TARGET,
  type World,
} from "./stage.testing.ts";

/** What nobody should send: the right code, and nothing touched. */

const capability = mountCapability();

const IDS = [
  "../../etc",
  "..",
  "/etc/passwd",
  "vol-../../../etc",
  "a\u0000b",
  "vol-" + "0".repeat(36),
  "x".repeat(100_000),
  "--help",
  "$(reboot)",
];
const PATHS = [
  "relative/path",
  "/kubelet/../etc",
  "/",
  "//",
  "/kubelet/pods/a\u0000b",
  `/${"x".repeat(5_000)}`,
];

/** Everything that could be touched, in one value. */
async function picture({ host }: World): Promise<unknown> {
  return { tree: host.tree(""), loops: await host.loops.list(), mounts: await host.mounts.list() };
}

describe("ids that are paths, options or nonsense", () => {
  test.each(IDS.map((id) => [JSON.stringify(id).slice(0, 40), id] as const))(
    "%s names nothing",
    async (_, volumeId) => {
      const world = await given({ modifyVolume: true });
      await published(world, await createdVolume(world, "bystander"));
      const before = await picture(world);
      const { controller, node, group } = world;
      const volumeCapability = capability;
      const range = { capacityRange: { requiredBytes: 1n } };

      const codes = {
        delete: await codeOf(controller.deleteVolume({ volumeId })),
        unpublish: await codeOf(controller.controllerUnpublishVolume({ volumeId, nodeId: volumeId })),
        attach: await codeOf(
          controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability }),
        ),
        get: await codeOf(controller.controllerGetVolume({ volumeId })),
        expand: await codeOf(controller.controllerExpandVolume({ volumeId, ...range })),
        modify: await codeOf(controller.controllerModifyVolume({ volumeId })),
        snapshot: await codeOf(controller.createSnapshot({ name: "s", sourceVolumeId: volumeId })),
        dropSnapshot: await codeOf(controller.deleteSnapshot({ snapshotId: volumeId })),
        group: await codeOf(group.createVolumeGroupSnapshot({ name: "g", sourceVolumeIds: [volumeId] })),
        dropGroup: await codeOf(group.deleteVolumeGroupSnapshot({ groupSnapshotId: volumeId })),
        stage: await codeOf(node.nodeStageVolume({ volumeId, stagingTargetPath: STAGING, volumeCapability })),
        publish: await codeOf(
          node.nodePublishVolume({
            volumeId,
            stagingTargetPath: STAGING,
            targetPath: TARGET,
            volumeCapability,
          }),
        ),
        unstage: await codeOf(node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING })),
        withdraw: await codeOf(node.nodeUnpublishVolume({ volumeId, targetPath: TARGET })),
        stats: await codeOf(node.nodeGetVolumeStats({ volumeId, volumePath: TARGET })),
        grow: await codeOf(node.nodeExpandVolume({ volumeId, volumePath: TARGET })),
      };

      expect(codes).toEqual({
        ...{
          delete: "OK",
          unpublish: "OK",
          attach: "NOT_FOUND",
          get: "NOT_FOUND",
          expand: "NOT_FOUND",
          modify: "NOT_FOUND",
        },
        ...{ snapshot: "NOT_FOUND", dropSnapshot: "OK", group: "NOT_FOUND", dropGroup: "OK" },
        ...{
          stage: "NOT_FOUND",
          publish: "NOT_FOUND",
          unstage: "OK",
          withdraw: "OK",
          stats: "NOT_FOUND",
          grow: "NOT_FOUND",
        },
      });
      expect(await picture(world)).toEqual(before);
    },
  );

  test.each(["../../etc", "a/b", "-rf", "x\ny"])(
    "a volume may be called %j: its name is no path",
    async (name) => {
      const world = await given();

      const volumeId = await createdVolume(world, name);

      expect(world.host.tree(STATE).filter((path) => path.includes("etc") || path.includes("-rf"))).toEqual(
        [],
      );
      expect(volumeId).toMatch(/^vol-[0-9a-f-]{36}$/);
    },
  );

  test.each(["n".repeat(129), "bell\u0007", "\u009f"])("the name %j is refused", async (name) => {
    const world = await given();

    expect(await codeOf(world.controller.createVolume({ name, volumeCapabilities: [capability] }))).toBe(
      "INVALID_ARGUMENT",
    );
    expect(await codeOf(world.controller.createSnapshot({ name, sourceVolumeId: "x" }))).toBe(
      "INVALID_ARGUMENT",
    );
  });
});

describe("paths", () => {
  test.each(PATHS.map((path) => [JSON.stringify(path).slice(0, 40), path] as const))(
    "%s is refused everywhere",
    async (_, path) => {
      const world = await given();
      const volumeId = await createdVolume(world, "a");
      await staged(world, volumeId);
      const before = await picture(world);
      const { node } = world;

      expect(
        await codeOf(
          node.nodeStageVolume({ volumeId, stagingTargetPath: path, volumeCapability: capability }),
        ),
      ).toBe("INVALID_ARGUMENT");
      expect(
        await codeOf(
          node.nodePublishVolume({
            volumeId,
            stagingTargetPath: STAGING,
            targetPath: path,
            volumeCapability: capability,
          }),
        ),
      ).toBe("INVALID_ARGUMENT");
      expect(await codeOf(node.nodeUnpublishVolume({ volumeId, targetPath: path }))).toBe("INVALID_ARGUMENT");
      expect(await codeOf(node.nodeUnstageVolume({ volumeId, stagingTargetPath: path }))).toBe(
        "INVALID_ARGUMENT",
      );
      expect(await picture(world)).toEqual(before);
    },
  );

  test("a target that is a link is refused; a link above it is followed once, and the mount is where it leads", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await staged(world, volumeId);
    world.host.makePath("/secret");
    world.host.makeSymlink("/kubelet/pods/link", "/secret");
    const publish = (targetPath: string) =>
      world.node.nodePublishVolume({
        volumeId,
        stagingTargetPath: STAGING,
        targetPath,
        volumeCapability: capability,
      });

    expect(await codeOf(publish("/kubelet/pods/link"))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(publish("/kubelet/pods/link/"))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(publish("/kubelet/pods/link/inner"))).toBe("OK");
    expect((await world.host.mounts.list()).map(({ path }) => path)).toContain("/secret/inner");
    await world.node.nodeUnpublishVolume({ volumeId, targetPath: "/kubelet/pods/link/inner" });
    expect(world.host.tree("/secret")).toEqual([]);
  });

  test("a staging path that is a link or a file is refused", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    world.host.makeSymlink("/kubelet/link", "/kubelet/stage");
    await world.controller.controllerPublishVolume({
      volumeId,
      nodeId: "node-1",
      volumeCapability: capability,
    });

    expect(
      await codeOf(
        world.node.nodeStageVolume({
          volumeId,
          stagingTargetPath: "/kubelet/link",
          volumeCapability: capability,
        }),
      ),
    ).toBe("FAILED_PRECONDITION");
    expect(await world.host.loops.list()).toEqual([]);
  });

  test("a directory with somebody's files at the target is never emptied", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    world.host.reboot();
    world.host.makePath(`${TARGET}/somebodys`);

    expect(await codeOf(world.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET }))).toBe("INTERNAL");
    expect(world.host.tree(TARGET)).toEqual([`${TARGET}/somebodys`]);
  });
});

describe("capabilities", () => {
  const create = ({ controller }: World, ...volumeCapabilities: object[]) =>
    codeOf(controller.createVolume({ name: "a", volumeCapabilities: volumeCapabilities }));

  test.each([
    ["an unknown access mode", [{ ...capability, accessMode: { mode: 99 } }]],
    ["access mode UNKNOWN", [{ ...capability, accessMode: { mode: 0 } }]],
    ["no access mode", [{ accessType: { case: "block", value: {} } }]],
    ["no access type", [{ accessMode: { mode: 1 } }]],
    ["both access types", [capability, blockCapability()]],
    ["two filesystems", [mountCapability({ fsType: "ext4" }), mountCapability({ fsType: "xfs" })]],
    ["a filesystem nobody has", [mountCapability({ fsType: "ext4 -F" })]],
  ])("7: %s is refused", async (_, capabilities) => {
    const world = await given();

    expect(await create(world, ...capabilities)).toBe("INVALID_ARGUMENT");
  });

  const FLAGS = [
    "bind",
    "rbind",
    "remount",
    "move",
    "loop=/dev/sda",
    "offset=4096",
    "shared",
    "rprivate",
    "ro,bind",
    "a\u0000b",
    "x-mount.mkdir",
    "logdev=/dev/sda",
    "",
    "journal_path=/etc",
  ];
  test.each(FLAGS)("26: mount flag %j is refused, and not repeated in the message", async (flag) => {
    const world = await given();
    const wish = world.controller.createVolume({
      name: "a",
      volumeCapabilities: [mountCapability({ mountFlags: ["noatime", flag] })],
    });

    const error = await wish.then(
      () => undefined,
      (thrown: unknown) => thrown as Error,
    );

    expect(error?.message).toMatch(/^INVALID_ARGUMENT: mount flag 2 of 2 is not allowed/);
  });

  test.each(["noatime", "data=ordered", "discard", "commit=30"])("mount flag %j is fine", async (flag) => {
    expect(await create(await given(), mountCapability({ mountFlags: [flag] }))).toBe("OK");
  });

  test("6: parameters: unknown, oversized or without a pool", async () => {
    const world = await given();
    const create = (parameters: Record<string, string>) =>
      codeOf(world.controller.createVolume({ name: "a", volumeCapabilities: [capability], parameters }));

    expect(await create({ colour: "red" })).toBe("INVALID_ARGUMENT");
    expect(await create({ kind: "fast" })).toBe("INVALID_ARGUMENT");
    expect(await create({ provisioning: "thicc" })).toBe("INVALID_ARGUMENT");
    expect(await create({ "csi.storage.k8s.io/pvc/name": "x".repeat(5_000) })).toBe("INVALID_ARGUMENT");
    expect(await create({ "csi.storage.k8s.io/pvc/name": "claim" })).toBe("OK");
  });

  test("a negative number of entries is refused", async () => {
    const { controller } = await given();

    expect(await codeOf(controller.listVolumes({ maxEntries: -1 }))).toBe("INVALID_ARGUMENT");
    expect(await codeOf(controller.listSnapshots({ startingToken: "after/../../etc" }))).toBe("ABORTED");
  });
});
