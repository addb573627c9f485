import { expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { createFakeHost } from "./fake-host.testing.ts";
import { RESERVE_SPARES } from "./reserve.ts";
import {
  codeOf,
  createdVolume,
  given,
  mountCapability,
  published,
  released,
  STATE,
} from "./stage.testing.ts";

/** A disk without a free block or inode: what gives something back works, and so does a start; nothing new is made. */

const reserveAt = `${STATE}/reserve/controller`;

test("everything that lets go works on a full disk, a restart between; then the reserve is whole again", async () => {
  const world = await given();
  const [a, b] = [await createdVolume(world, "a"), await createdVolume(world, "b")];
  await published(world, a);
  const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: a });
  const { groupSnapshot } = await world.group.createVolumeGroupSnapshot({ name: "g", sourceVolumeIds: [b] });
  const pod = { volumeId: "csi-1", targetPath: "/kubelet/pods/scratch" };
  await world.node.nodePublishVolume({
    ...pod,
    volumeCapability: mountCapability(),
    volumeContext: { "csi.storage.k8s.io/ephemeral": "true" },
  });
  // What is freed, somebody else takes at once: the worst case.
  Object.defineProperty(world.host.room, "files", { get: () => 0, set: () => undefined, configurable: true });

  expect(await codeOf(createdVolume(world, "c"))).toBe("RESOURCE_EXHAUSTED");
  expect(await codeOf(world.controller.createSnapshot({ name: "t", sourceVolumeId: b }))).toBe(
    "RESOURCE_EXHAUSTED",
  );
  const after = await world.restart();
  await released(after, a);
  await after.node.nodeUnpublishVolume(pod);
  await after.controller.deleteVolume({ volumeId: a });
  await after.controller.deleteSnapshot({ snapshotId: snapshot?.snapshotId ?? "" });
  await after.group.deleteVolumeGroupSnapshot({ groupSnapshotId: groupSnapshot?.groupSnapshotId ?? "" });
  expect(after.driver.spares()).toBe(RESERVE_SPARES - 11);
  Object.defineProperty(world.host.room, "files", { value: 1_000, writable: true });
  await after.controller.deleteVolume({ volumeId: b });

  expect(after.driver.spares()).toBe(RESERVE_SPARES);
  expect(after.driver.counts()).toMatchObject({ volumes: 0, snapshots: 0, attachments: 0, staged: 0 });
  expect(await after.host.loops.list()).toEqual([]);
  expect(after.host.tree(`${STATE}/tmp/controller`)).toEqual([]);
});

test("with nobody else writing, what a record frees is the next spare: 100 volumes are let go with 16 of them", async () => {
  const world = await given();
  const ids: string[] = [];
  for (let count = 0; count < 100; count++) {
    const id = await createdVolume(world, `v${count}`);
    const where = { stagingTargetPath: `/kubelet/s${count}`, targetPath: `/kubelet/pods/t${count}` };
    world.host.makePath(where.stagingTargetPath);
    await published(world, id, where);
    ids.push(id);
  }
  world.host.room.files = 0;

  for (const [count, id] of ids.entries())
    await released(world, id, {
      stagingTargetPath: `/kubelet/s${count}`,
      targetPath: `/kubelet/pods/t${count}`,
    });

  expect(world.driver.counts()).toMatchObject({ attachments: 0, staged: 0 });
});

test("where the reserve could not be made the driver starts all the same, and makes it when there is room", async () => {
  const host = createFakeHost();
  await given({}, host);
  for (const name of await host.files.list(reserveAt)) await host.files.removeFile(`${reserveAt}/${name}`);
  host.room.files = 0;

  const world = await given({}, host);

  expect(world.driver.spares()).toBe(0);
  host.room.files = 100;
  const volumeId = await createdVolume(world, "a");
  expect(world.driver.spares()).toBe(RESERVE_SPARES);
  expect(await host.files.list(reserveAt)).toHaveLength(RESERVE_SPARES);
  await world.controller.deleteVolume({ volumeId });
});

test("a spare that a kill left half written, or that a start took for its lock, is passed over", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a");
  await published(world, volumeId);
  const names = await world.host.files.list(reserveAt);
  for (const name of names.slice(2)) await world.host.files.removeFile(`${reserveAt}/${name}`);
  world.host.room.files = 0;

  await released(world, volumeId);

  await world.host.files.writeDurable(`${reserveAt}/${names[0]}`, "half").catch(() => undefined);
  world.host.room.files = 1;
  await world.host.files.writeDurable(`${reserveAt}/torn`, "half");
  const after = await world.restart();
  expect(await after.host.files.stat(`${reserveAt}/torn`)).toBeUndefined();
});

test("a record that is longer than a spare takes the room of others", async () => {
  const world = await given({ nodes: Array.from({ length: 60 }, (_, index) => `node-${index + 2}`) });
  const capability = mountCapability({ mode: Mode.MULTI_NODE_READER_ONLY, mountFlags: ["noatime"] });
  const volumeId = await createdVolume(world, "a", { capability });
  for (let index = 0; index < 60; index++)
    await world.controller.controllerPublishVolume({
      volumeId,
      nodeId: `node-${index + 2}`,
      volumeCapability: capability,
      readonly: true,
    });
  expect(
    ((await world.host.files.read(`${STATE}/volumes/${volumeId}/meta.json`)) ?? "").length,
  ).toBeGreaterThan(5_000);
  world.host.room.files = 0;

  await world.controller.controllerUnpublishVolume({ volumeId, nodeId: "node-2" });

  const { entries } = await (await world.restart()).controller.listVolumes({});
  expect(entries[0]?.status?.publishedNodeIds).toHaveLength(59);
});
