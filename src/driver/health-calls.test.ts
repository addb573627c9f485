import { describe, expect, test } from "vitest";
import { StorageHealthErrorType, VolumeHealthErrorType as Status } from "../csi/gen/csi_pb.ts";
import { HostError } from "./host.ts";
import { GIB } from "./options.ts";
import { FAULTS_IN_A_ROW_MAX } from "./soundness.ts";
import {
  blockCapability,
  codeOf,
  createdVolume,
  given,
  staged,
  STAGING,
  STATE,
  type World,
} from "./stage.testing.ts";

/** The health calls after CSI 1.12, and what Probe says of the driver itself. */

const imageOf = (id: string) => `${STATE}/volumes/${id}/image.raw`;
const statuses = async ({ controller }: World, volumeId: string) =>
  (await controller.controllerGetVolumeHealth({ volumeId })).volumeHealth?.healthStatuses.map(
    ({ status, reason }) => [status, reason],
  );

describe("the controller's view", () => {
  test("a missing image is lost data, a nearly full pool degrades; a list has only those with a problem", async () => {
    const world = await given({ volumeHealth: true });
    const [well, ill] = [await createdVolume(world, "well"), await createdVolume(world, "ill")];
    await world.host.files.removeFile(imageOf(ill));

    expect(await statuses(world, well)).toEqual([]);
    expect(await statuses(world, ill)).toEqual([[Status.DATA_LOSS, "ImageMissing"]]);
    const { entries } = await world.controller.controllerListVolumeHealth({});
    expect(entries.map(({ volumeId }) => volumeId)).toEqual([ill]);
    world.host.pool.freeBytes = 1n * GIB;
    expect(await statuses(world, well)).toEqual([[Status.DEGRADED, "PoolNearlyFull"]]);
    expect(await codeOf(world.controller.controllerGetVolumeHealth({ volumeId: "gone" }))).toBe("NOT_FOUND");
  });

  test("a damaged record is inaccessible, and pages go on where they ended", async () => {
    const world = await given({ volumeHealth: true });
    const ids = await Promise.all(["a", "b", "c"].map((name) => createdVolume(world, name)));
    for (const id of ids) await world.host.files.writeDurable(`${STATE}/volumes/${id}/meta.json`, "{");
    const after = await world.restart();

    const first = await after.controller.controllerListVolumeHealth({ maxEntries: 2 });
    const rest = await after.controller.controllerListVolumeHealth({ startingToken: first.nextToken });

    expect([...first.entries, ...rest.entries].map(({ volumeId }) => volumeId)).toEqual([...ids].sort());
    expect(first.entries[0]?.healthStatuses[0]?.status).toBe(Status.INACCESSIBLE);
  });
});

describe("the node's view", () => {
  for (const [what, broken, reason] of [
    ["says emergency_ro", { failure: "emergency_ro" }, "FilesystemReadOnly"],
    ["says shutdown", { failure: "shutdown" }, "FilesystemReadOnly"],
    [
      "says emergency_ro and is mounted read-only",
      { failure: "emergency_ro", readonly: true },
      "FilesystemReadOnly",
    ],
    ["says ro under a writable mount", { filesystemReadonly: true }, "FilesystemReadOnly"],
    ["answers EIO at its root", "EIO", "FilesystemUnreadable"],
  ] as const) {
    test(`a filesystem that ${what} is not well`, async () => {
      const world = await given({ volumeHealth: true });
      const volumeId = await createdVolume(world, "a");
      await staged(world, volumeId);
      const { files, mounts } = world.host;
      const [stat, list] = [files.stat.bind(files), mounts.list.bind(mounts)];

      if (broken === "EIO")
        files.stat = async (path) => {
          if (path === STAGING) throw new HostError("Failed", "EIO");
          return stat(path);
        };
      else mounts.list = async () => (await list()).map((mount) => ({ ...mount, ...broken }));

      const { volumeHealth } = await world.node.nodeGetVolumeHealth({ volumeId });
      expect(volumeHealth?.healthStatuses.map((one) => one.reason)).toEqual([reason]);
      const stats = world.node.nodeGetVolumeStats({ volumeId, volumePath: STAGING });
      expect((await stats).volumeCondition).toMatchObject({ abnormal: true });
    });
  }

  test("a device that goes with its last user is not well; staged again it is", async () => {
    const world = await given({ volumeHealth: true });
    const volumeId = await createdVolume(world, "a", { capability: blockCapability() });
    await staged(world, volumeId, { capability: blockCapability() });
    const [device] = await world.host.loops.list();
    const holder = world.host.openDevice(device!.path);
    await world.host.loops.detach(device!).catch(() => undefined);
    const reasons = async () =>
      (await world.node.nodeGetVolumeHealth({ volumeId })).volumeHealth?.healthStatuses.map(
        ({ reason }) => reason,
      );

    expect(await reasons()).toEqual(["DeviceGoing"]);
    await staged(world, volumeId, { capability: blockCapability() });
    holder.close();

    expect(await reasons()).toEqual([]);
  });

  test("a mount that is gone is inaccessible; a volume that is elsewhere is not found", async () => {
    const world = await given({ volumeHealth: true });
    const volumeId = await createdVolume(world, "a");
    await staged(world, volumeId);
    const ask = (request: object = {}) => world.node.nodeGetVolumeHealth({ volumeId, ...request });

    expect((await ask({ stagingTargetPath: STAGING })).volumeHealth?.healthStatuses).toEqual([]);
    await world.host.mounts.unmount(STAGING);
    expect((await ask()).volumeHealth?.healthStatuses).toMatchObject([
      { status: Status.INACCESSIBLE, reason: "MountMissing" },
    ]);
    world.host.reboot();
    expect((await ask()).volumeHealth?.healthStatuses).toMatchObject([{ reason: "DeviceMissing" }]);
    expect(await codeOf(ask({ stagingTargetPath: "/elsewhere" }))).toBe("NOT_FOUND");
    expect(await codeOf(ask({ volumeId: "gone" }))).toBe("NOT_FOUND");
  });

  test("the pool is healthy, degraded when nearly full, unreachable when nobody can look", async () => {
    const world = await given({ volumeHealth: true });
    const health = async () => (await world.node.nodeGetStorageHealth({})).backendHealth;

    expect(await health()).toEqual([]);
    world.host.pool.freeBytes = 1n * GIB;
    expect(await health()).toMatchObject([{ status: StorageHealthErrorType.STORAGE_DEGRADED }]);
    world.host.images.pool = () => Promise.reject(new Error("EIO"));
    expect(await health()).toMatchObject([{ status: StorageHealthErrorType.STORAGE_UNREACHABLE }]);
  });
});

test("the numbers after 1.12 are offered only when asked for", async () => {
  const numbers = async (world: World) =>
    [
      ...(await world.controller.controllerGetCapabilities({})).capabilities,
      ...(await world.node.nodeGetCapabilities({})).capabilities,
    ].map(({ type }) => (type.value as { type?: number } | undefined)?.type ?? 0);

  expect((await numbers(await given())).filter((number) => number > 15)).toEqual([]);
  const world = await given({ volumeHealth: true });
  expect(await numbers(world)).toEqual(expect.arrayContaining([16, 17, 7, 8]));
  expect(await codeOf((await given()).controller.controllerListVolumeHealth({}))).toBe("UNIMPLEMENTED");
});

describe("Probe", () => {
  const call = (unexpected: boolean, path = "/csi.v1.Node/NodeStageVolume") => ({
    path,
    code: "INTERNAL" as const,
    tookMs: 1,
    unexpected,
  });

  test("fails after a row of calls that failed in unknown ways; one that did not ends the row", async () => {
    const { driver, identity } = await given();

    for (let fault = 1; fault < FAULTS_IN_A_ROW_MAX; fault++) driver.observe(call(true));
    expect(await codeOf(identity.probe({}))).toBe("OK");
    driver.observe(call(true));
    driver.observe(call(false, "/csi.v1.Identity/Probe"));
    expect(await codeOf(identity.probe({}))).toBe("FAILED_PRECONDITION");
    expect(driver.problem()).toContain("in a row");
    driver.observe(call(false));
    expect(await codeOf(identity.probe({}))).toBe("OK");
  });

  test("fails while a tool is missing, naming it; what is promised and used is counted", async () => {
    const world = await given();
    await createdVolume(world, "a");

    expect(await world.driver.usage()).toMatchObject({
      promisedBytes: 67_108_864n,
      usedBytes: 0n,
      loopDevices: 0,
    });
    world.host.filesystems.missingTool = () => "losetup";
    expect(await codeOf(world.identity.probe({}))).toBe("FAILED_PRECONDITION");
    expect(world.driver.problem()).toContain("losetup");
  });
});
