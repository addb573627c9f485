import { describe, expect, test } from "vitest";
import { createFakeHost } from "./fake-host.testing.ts";
import { HostError } from "./host.ts";
import { LOCK_WAIT_MS } from "./locks.ts";
import { GIB, MIB } from "./options.ts";
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

/**
 * Scenarios of the driver's specification, by their numbers, that need no real device: growth, health, snapshots and calls
 * at once. Those that do are in test/e2e.
 */

const capability = mountCapability();
const imagePath = (id: string) => `${STATE}/volumes/${id}/image.raw`;
const messageOf = (call: Promise<unknown>) =>
  call.then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : ""),
  );
describe("growth and health", () => {
  const expand = ({ controller }: World, volumeId: string, capacityRange: object) =>
    controller.controllerExpandVolume({ volumeId, capacityRange });

  test("28: volumes never shrink, and say so only when they must", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");

    expect((await expand(world, volumeId, { requiredBytes: 1n })).capacityBytes).toBe(64n * MIB);
    expect(await codeOf(expand(world, volumeId, { limitBytes: 32n * MIB }))).toBe("OUT_OF_RANGE");
    expect(await codeOf(expand(world, volumeId, { requiredBytes: 5_000n * GIB }))).toBe("OUT_OF_RANGE");
  });

  test("29: grown while published: the device follows, twice is fine", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a", { capability: blockCapability() });
    await published(world, volumeId, { capability: blockCapability() });
    await expand(world, volumeId, { requiredBytes: 128n * MIB });

    for (let again = 0; again < 2; again++) {
      expect((await world.node.nodeExpandVolume({ volumeId, volumePath: TARGET })).capacityBytes).toBe(
        128n * MIB,
      );
    }
  });

  test("30: where the kernel forbids growth of a mounted filesystem, the answer says when it happens, and it does", async () => {
    const host = createFakeHost();
    const grow = host.filesystems.grow.bind(host.filesystems);
    host.filesystems.grow = async (device, type, mountPoint) => {
      if (mountPoint !== undefined) throw new HostError("NotPermitted", "resize2fs: Operation not permitted");
      await grow(device, type);
    };
    const world = await given({}, host);
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    await expand(world, volumeId, { requiredBytes: 128n * MIB });
    const node = () => world.node.nodeExpandVolume({ volumeId, volumePath: TARGET });

    expect(await codeOf(node())).toBe("FAILED_PRECONDITION");
    expect(await messageOf(node())).toContain("grows when it is staged next");
    await released(world, volumeId);
    await published(world, volumeId);
    expect(await codeOf(node())).toBe("OK");
    expect(host.image(imagePath(volumeId)).fsBytes).toBe(128n * MIB);
  });

  test("a missing image, a lost mount and a full pool are abnormal", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await staged(world, volumeId);
    const condition = async () =>
      (await world.controller.controllerGetVolume({ volumeId })).status?.volumeCondition;

    expect(await condition()).toMatchObject({ abnormal: false });
    world.host.pool.freeBytes = 1n * GIB;
    expect((await condition())?.message).toContain("nearly full");
    await world.host.files.removeFile(imagePath(volumeId));
    expect((await condition())?.message).toContain("missing");
  });

  test.each([
    ["cut short", '{"id":"vol-'],
    ["empty", ""],
    ["garbage", "\u0000\u00ff{{"],
    ["of another shape", '{"volumes":[]}'],
  ])("39: one record %s: the others work, that one is abnormal and is not deleted", async (_, text) => {
    const world = await given();
    const [good, bad] = [await createdVolume(world, "good"), await createdVolume(world, "bad")];
    await world.host.files.writeDurable(`${STATE}/volumes/${bad}/meta.json`, text);

    const after = await world.restart();

    await published(after, good);
    expect(
      (await after.controller.controllerGetVolume({ volumeId: bad })).status?.volumeCondition?.abnormal,
    ).toBe(true);
    expect(await codeOf(after.controller.deleteVolume({ volumeId: bad }))).toBe("FAILED_PRECONDITION");
    expect(await after.host.files.stat(imagePath(bad))).toBeDefined();
  });
});

describe("snapshots and groups", () => {
  const restore = ({ controller }: World, name: string, snapshotId: string, requiredBytes: bigint) =>
    controller.createVolume({
      name,
      volumeCapabilities: [capability],
      capacityRange: { requiredBytes, limitBytes: requiredBytes },
      volumeContentSource: { type: { case: "snapshot", value: { snapshotId } } },
    });

  test("10, 34: cut while mounted: restored larger it has the data and the room; smaller is refused; the source may be gone", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    world.host.writeData(TARGET, "diary", "precious");
    const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
    world.host.writeData(TARGET, "diary", "spoiled");
    await released(world, volumeId);
    await world.controller.deleteVolume({ volumeId });

    const { volume } = await restore(world, "r", snapshot?.snapshotId ?? "", 128n * MIB);
    await published(world, volume?.volumeId ?? "");

    expect(world.host.readData(TARGET, "diary")).toBe("precious");
    expect(world.host.image(imagePath(volume?.volumeId ?? "")).fsBytes).toBe(128n * MIB);
    expect(world.host.frozen()).toEqual([]);
    expect(await codeOf(restore(world, "small", snapshot?.snapshotId ?? "", 32n * MIB))).toBe("OUT_OF_RANGE");
  });

  test("a copy that takes longer than writers may stall is given up, thawed and leaves nothing", async () => {
    const host = createFakeHost();
    host.images.copy = (_from, _to, { signal } = {}) =>
      new Promise((_, reject) =>
        signal?.addEventListener("abort", () => reject(new HostError("TimedOut", "stopped"))),
      );
    const world = await given({}, host);
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);

    const code = codeOf(world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId }));
    await world.scheduler.runFor(10_000);

    expect(await code).toBe("ABORTED");
    expect(host.frozen()).toEqual([]);
    expect(host.tree(`${STATE}/snapshots`)).toEqual([]);
  });

  test("37: a group has one moment; members go only with it; one missing source means nothing was made", async () => {
    const world = await given();
    const ids = await Promise.all(["a", "b", "c"].map((name) => createdVolume(world, name)));

    const { groupSnapshot } = await world.group.createVolumeGroupSnapshot({
      name: "g",
      sourceVolumeIds: ids,
    });
    const again = await world.group.createVolumeGroupSnapshot({
      name: "g",
      sourceVolumeIds: [...ids].reverse(),
    });

    expect(again.groupSnapshot?.groupSnapshotId).toBe(groupSnapshot?.groupSnapshotId);
    expect(
      new Set(groupSnapshot?.snapshots.map(({ creationTime }) => String(creationTime?.seconds))).size,
    ).toBe(1);
    expect(new Set(groupSnapshot?.snapshots.map(({ groupSnapshotId }) => groupSnapshotId))).toEqual(
      new Set([groupSnapshot?.groupSnapshotId]),
    );
    const [member] = groupSnapshot?.snapshots ?? [];
    expect(await codeOf(world.controller.deleteSnapshot({ snapshotId: member?.snapshotId ?? "" }))).toBe(
      "INVALID_ARGUMENT",
    );
    await world.group.deleteVolumeGroupSnapshot({ groupSnapshotId: groupSnapshot?.groupSnapshotId ?? "" });
    expect(
      await codeOf(world.group.createVolumeGroupSnapshot({ name: "h", sourceVolumeIds: [ids[0]!, "gone"] })),
    ).toBe("NOT_FOUND");
    expect(world.host.tree(`${STATE}/snapshots`)).toEqual([]);
    expect(world.host.tree(`${STATE}/groups`)).toEqual([]);
  });

  test("36: a list by source has all of its snapshots; by id and source both must match; 2 by 2 over 5", async () => {
    const world = await given();
    const [a, b] = [await createdVolume(world, "a"), await createdVolume(world, "b")];
    const cut = async (name: string, sourceVolumeId: string) =>
      (await world.controller.createSnapshot({ name, sourceVolumeId })).snapshot?.snapshotId;
    const ofA = await Promise.all(["s1", "s2", "s3"].map((name) => cut(name, a)));
    const ofB = await Promise.all(["s4", "s5"].map((name) => cut(name, b)));
    const found = async (filter: object) => {
      const { entries, nextToken } = await world.controller.listSnapshots(filter);
      return { ids: entries.map(({ snapshot }) => snapshot?.snapshotId).sort(), nextToken };
    };

    expect((await found({ sourceVolumeId: a })).ids).toEqual([...ofA].sort());
    expect((await found({ sourceVolumeId: b, snapshotId: ofB[1] })).ids).toEqual([ofB[1]]);
    expect((await found({ sourceVolumeId: a, snapshotId: ofB[1] })).ids).toEqual([]);
    const pages = [await found({ maxEntries: 2 })];
    for (let last = pages[0]; last?.nextToken; last = pages.at(-1))
      pages.push(await found({ maxEntries: 2, startingToken: last.nextToken }));
    expect(pages.map(({ ids }) => ids.length)).toEqual([2, 2, 1]);
    expect(pages.flatMap(({ ids }) => ids).sort()).toEqual([...ofA, ...ofB].sort());
  });
});

describe("concurrency", () => {
  test("42: a tool that hangs keeps its volume busy, and nothing else", async () => {
    const host = createFakeHost();
    let letGo = (): void => undefined;
    const format = host.filesystems.format.bind(host.filesystems);
    host.filesystems.format = async (device, type) => {
      await new Promise<void>((resolve) => (letGo = resolve));
      await format(device, type);
    };
    const world = await given({}, host);
    const volumeId = await createdVolume(world, "stuck");
    const stuck = staged(world, volumeId);
    await world.scheduler.runFor(1);

    const second = codeOf(
      world.node.nodeStageVolume({ volumeId, stagingTargetPath: STAGING, volumeCapability: capability }),
    );
    await world.scheduler.runFor(LOCK_WAIT_MS);

    expect(await second).toBe("ABORTED");
    expect((await world.identity.probe({})).ready).toBe(true);
    expect(await createdVolume(world, "other")).toMatch(/^vol-/);
    letGo();
    await stuck;
    expect(await codeOf(staged(world, volumeId))).toBe("OK");
  });

  test("41: a full disk while a record is written: refused, and the old state stands", async () => {
    const host = createFakeHost();
    const world = await given({}, host);
    const volumeId = await createdVolume(world, "a");
    host.files.writeDurable = async () => {
      throw new HostError("NoSpace", "write: ENOSPC");
    };

    const code = await codeOf(
      world.controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability: capability }),
    );

    expect(code).toBe("RESOURCE_EXHAUSTED");
    expect((await world.controller.controllerGetVolume({ volumeId })).status?.publishedNodeIds).toEqual([]);
  });
});
