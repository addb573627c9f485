import { describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { createFakeHost } from "./fake-host.testing.ts";
import { HostError } from "./host.ts";
import { LOCK_WAIT_MS } from "./locks.ts";
import {
  codeOf,
  createdVolume,
  given,
  mountCapability,
  openPeer,
  published,
  staged,
  STAGING,
  STATE,
  TARGET,
  type World,
} from "./stage.testing.ts";

/** What the protocol says of calls that come again, at once, out of order, or fail halfway. */

const capability = mountCapability();
const publishing = (volumeId: string, other: object = {}) => ({
  volumeId,
  stagingTargetPath: STAGING,
  targetPath: TARGET,
  volumeCapability: capability,
  ...other,
});

describe("published on the same node again", () => {
  const SHARED = ["OK", "ALREADY_EXISTS", "OK"];
  for (const [mode, codes] of [
    [Mode.MULTI_NODE_READER_ONLY, SHARED],
    [Mode.MULTI_NODE_SINGLE_WRITER, SHARED],
    [Mode.MULTI_NODE_MULTI_WRITER, SHARED],
    [Mode.SINGLE_NODE_MULTI_WRITER, SHARED],
    [Mode.SINGLE_NODE_SINGLE_WRITER, ["OK", "ALREADY_EXISTS", "FAILED_PRECONDITION"]],
    // The protocol's table refuses a second target for these two; kubelet publishes one to several pods of a node.
    [Mode.SINGLE_NODE_WRITER, SHARED],
    [Mode.SINGLE_NODE_READER_ONLY, SHARED],
  ] as const) {
    test(`21: ${Mode[mode]}: the same, other arguments, another target: ${codes.join(", ")}`, async () => {
      const world = await given();
      const volumeCapability = mountCapability({ mode });
      const volumeId = await createdVolume(world, "a", { capability: volumeCapability });
      await published(world, volumeId, { capability: volumeCapability });
      const again = (other: object) =>
        codeOf(world.node.nodePublishVolume(publishing(volumeId, { volumeCapability, ...other })));
      const elsewhere = "/kubelet/pods/elsewhere";

      expect([
        await again({ secrets: { other: "than before" } }),
        await again({ readonly: true }),
        await again({ targetPath: elsewhere }),
      ]).toEqual(codes);
      const made = (await world.host.files.stat(elsewhere)) !== undefined;
      expect(made).toBe(codes[2] === "OK");
    });
  }
});

describe("a final code means that nothing is left", () => {
  const FAILED = () => Promise.reject(new HostError("Failed", "it does not work"));
  const picture = async ({ host }: World) => ({
    mounts: await host.mounts.list(),
    loops: await host.loops.list(),
    node: host.tree(`${STATE}/node`),
    pods: host.tree("/kubelet/pods"),
  });

  for (const [what, fail] of [
    ["mkfs", (host) => (host.filesystems.format = FAILED)],
    ["the mount", (host) => (host.mounts.mount = FAILED)],
    ["the loop device", (host) => (host.loops.attach = FAILED)],
    ["the look at what is there", (host) => (host.filesystems.probe = FAILED)],
  ] satisfies [string, (host: World["host"]) => unknown][]) {
    test(`stage, when ${what} fails`, async () => {
      const world = await given();
      const volumeId = await createdVolume(world, "a");
      const before = await picture(world);
      fail(world.host);

      expect(await codeOf(staged(world, volumeId))).toBe("INTERNAL");
      expect(await picture(world)).toEqual(before);
    });
  }

  for (const [what, fail] of [
    ["the bind", (host) => (host.mounts.bind = FAILED)],
    ["the remount", (host) => (host.mounts.remountBind = FAILED)],
  ] satisfies [string, (host: World["host"]) => unknown][]) {
    test(`publish, when ${what} fails`, async () => {
      const world = await given();
      const volumeId = await createdVolume(world, "a");
      await staged(world, volumeId);
      const before = await picture(world);
      fail(world.host);

      const code = await codeOf(world.node.nodePublishVolume(publishing(volumeId, { readonly: true })));

      expect(code).toBe("INTERNAL");
      expect(await picture(world)).toEqual(before);
    });
  }

  test("and what could not be undone yet is ABORTED, until it is", async () => {
    const host = createFakeHost();
    const [mount, detach] = [host.mounts.mount.bind(host.mounts), host.loops.detach.bind(host.loops)];
    host.mounts.mount = FAILED;
    host.loops.detach = FAILED;
    const world = await given({}, host);
    const volumeId = await createdVolume(world, "a");

    expect(await codeOf(staged(world, volumeId))).toBe("ABORTED");
    Object.assign(host.loops, { detach });
    expect(await codeOf(staged(world, volumeId))).toBe("INTERNAL");
    expect(await host.loops.list()).toEqual([]);
    Object.assign(host.mounts, { mount });
    expect(await codeOf(staged(world, volumeId))).toBe("OK");
  });

  test("42: a tool that had to be killed is ABORTED; its volume is free again, and is formatted by the next stage", async () => {
    const host = createFakeHost();
    const format = host.filesystems.format.bind(host.filesystems);
    host.filesystems.format = async (device, type) => {
      await format(device, type);
      throw new HostError("TimedOut", "mkfs.ext4 took longer than 60000 ms");
    };
    const world = await given({}, host);
    const volumeId = await createdVolume(world, "a");

    expect(await codeOf(staged(world, volumeId))).toBe("ABORTED");
    expect(await host.loops.list()).toEqual([]);
    Object.assign(host.filesystems, { format });
    expect(await codeOf(staged(world, volumeId))).toBe("OK");
  });
});

describe("while a volume is busy", () => {
  /** A snapshot whose copy takes until it is let go. */
  async function busyWorld() {
    const host = createFakeHost();
    const copy = host.images.copy.bind(host.images);
    let letGo = (): void => undefined;
    host.images.copy = async (from, to) => {
      await new Promise<void>((resolve) => (letGo = resolve));
      await copy(from, to);
    };
    const world = await given({ freezeMsMax: 60_000 }, host);
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    const snapshot = codeOf(world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId }));
    await world.scheduler.runFor(1);
    return { world, volumeId, snapshot, letGo: () => letGo() };
  }

  test("whoever only looks is answered at once; whoever changes it waits a moment and is told to come again", async () => {
    const { world, volumeId, snapshot, letGo } = await busyWorld();
    const { controller, node, identity } = world;

    // None of these moves the clock: a call that waited for the volume would never be answered.
    expect(await codeOf(node.nodeGetVolumeStats({ volumeId, volumePath: TARGET }))).toBe("OK");
    expect((await controller.listVolumes({})).entries).toHaveLength(1);
    expect(await codeOf(controller.controllerGetVolume({ volumeId }))).toBe("OK");
    expect(await codeOf(controller.listSnapshots({}))).toBe("OK");
    expect(await codeOf(controller.getCapacity({}))).toBe("OK");
    expect(await codeOf(node.nodeGetInfo({}))).toBe("OK");
    expect(await codeOf(node.nodeGetCapabilities({}))).toBe("OK");
    expect((await identity.probe({})).ready).toBe(true);
    const change = codeOf(node.nodeUnpublishVolume({ volumeId, targetPath: TARGET }));
    await world.scheduler.runFor(LOCK_WAIT_MS);

    expect(await change).toBe("ABORTED");
    letGo();
    expect(await snapshot).toBe("OK");
  });

  test("a caller that gives up does not stop the work: the next one finds it done", async () => {
    const { world, volumeId, letGo } = await busyWorld();
    const tooLate = codeOf(world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId }));
    await world.scheduler.runFor(LOCK_WAIT_MS);
    expect(await tooLate).toBe("ABORTED");

    letGo();
    await world.scheduler.runFor(1);

    const { entries } = await world.controller.listSnapshots({});
    const again = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
    expect(entries.map(({ snapshot }) => snapshot?.snapshotId)).toEqual([again.snapshot?.snapshotId]);
  });
});

test("calls out of order are survived: taken down twice, without being up, and after the delete", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a");
  const { node, controller } = world;
  const down = async () => [
    await codeOf(node.nodeUnpublishVolume({ volumeId, targetPath: TARGET })),
    await codeOf(node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING })),
    await codeOf(controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" })),
    await codeOf(controller.deleteVolume({ volumeId })),
  ];

  expect(await down()).toEqual(["OK", "OK", "OK", "OK"]);
  expect(await down()).toEqual(["OK", "OK", "OK", "OK"]);
});

test("until recovery has ended Probe says that it is not ready, and is no error", async () => {
  const world = await given();
  const starting = openPeer(world.host, world.clock);

  expect((await starting.identity.probe({})).ready).toBe(false);
  await starting.driver.recover();
  expect((await starting.identity.probe({})).ready).toBe(true);
});
