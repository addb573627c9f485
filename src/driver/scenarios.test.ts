import { describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
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

/** The scenarios of the driver's specification that need no real device; those that do are in test/e2e. */

const capability = mountCapability();
const imagePath = (id: string) => `${STATE}/volumes/${id}/image.raw`;
const create = ({ controller }: World, request: object) =>
  controller.createVolume({ name: "a", volumeCapabilities: [capability], ...request });
const messageOf = (call: Promise<unknown>) =>
  call.then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : ""),
  );

describe("create and delete", () => {
  test("a thin image has its size and no blocks; a thick one has them all", async () => {
    const world = await given();
    const thin = await createdVolume(world, "thin");
    const { volume } = await create(world, {
      name: "thick",
      capacityRange: { requiredBytes: 64n * MIB },
      parameters: { provisioning: "thick" },
    });

    expect(await world.host.files.stat(imagePath(thin))).toMatchObject({
      sizeBytes: 64n * MIB,
      allocatedBytes: 0n,
    });
    expect(await world.host.files.stat(imagePath(volume?.volumeId ?? ""))).toMatchObject({
      allocatedBytes: 64n * MIB,
    });
  });

  test.each([
    ["another size", { capacityRange: { requiredBytes: 65n * MIB } }],
    [
      "another filesystem",
      {
        volumeCapabilities: [mountCapability({ fsType: "xfs" })],
        capacityRange: { requiredBytes: 64n * MIB },
      },
    ],
    ["another access type", { volumeCapabilities: [blockCapability()] }],
    ["other parameters", { parameters: { provisioning: "thin" } }],
  ])("the same name with %s exists already", async (_, other) => {
    const world = await given();
    await createdVolume(world, "a");

    expect(await codeOf(create(world, other))).toBe("ALREADY_EXISTS");
  });

  test.each([
    ["nothing", {}, GIB],
    ["a limit only", { limitBytes: 100n * MIB + 5n }, 100n * MIB],
    ["100 MiB and a byte", { requiredBytes: 100n * MIB + 1n }, 100n * MIB + 4_096n],
    ["less than a filesystem needs", { requiredBytes: 1n }, 16n * MIB],
    [
      "a byte that rounding does not fit",
      { requiredBytes: 100n * MIB + 1n, limitBytes: 100n * MIB + 1n },
      "OUT_OF_RANGE",
    ],
    ["too little for a filesystem", { limitBytes: 1n * MIB }, "OUT_OF_RANGE"],
    ["more than the largest", { requiredBytes: 2_048n * GIB }, "OUT_OF_RANGE"],
    ["the largest number there is", { requiredBytes: 9_223_372_036_854_775_807n }, "OUT_OF_RANGE"],
    ["a negative size", { requiredBytes: -1n }, "INVALID_ARGUMENT"],
    ["more required than allowed", { requiredBytes: 64n * MIB, limitBytes: 32n * MIB }, "INVALID_ARGUMENT"],
  ])("asked for %s", async (_, capacityRange, wanted) => {
    const world = await given();

    if (typeof wanted === "string") expect(await codeOf(create(world, { capacityRange }))).toBe(wanted);
    else expect((await create(world, { capacityRange })).volume?.capacityBytes).toBe(wanted);
  });

  test("a full pool refuses, and takes again after a delete", async () => {
    const world = await given({ capacity: new Map([["fast", 100n * MIB]]) });
    const wish = (name: string) => ({
      name,
      capacityRange: { requiredBytes: 64n * MIB },
      parameters: { kind: "fast" },
    });
    const { volume } = await create(world, wish("a"));

    expect(await codeOf(create(world, wish("b")))).toBe("RESOURCE_EXHAUSTED");
    await world.controller.deleteVolume({ volumeId: volume?.volumeId ?? "" });
    expect(await codeOf(create(world, wish("b")))).toBe("OK");
    expect(await codeOf(create(world, { name: "c", parameters: { kind: "slow" } }))).toBe("INVALID_ARGUMENT");
    expect((await world.controller.getCapacity({ parameters: { kind: "fast" } })).availableCapacity).toBe(
      36n * MIB,
    );
    expect((await world.controller.getCapacity({ parameters: { kind: "slow" } })).availableCapacity).toBe(0n);
  });

  test("two creates that want the last room at once: one gets it", async () => {
    const world = await given({ capacity: new Map([["fast", 100n * MIB]]) });
    const wish = (name: string) =>
      codeOf(create(world, { name, capacityRange: { requiredBytes: 64n * MIB } }));

    expect((await Promise.all([wish("a"), wish("b")])).sort()).toEqual(["OK", "RESOURCE_EXHAUSTED"]);
  });

  test("thick without room leaves nothing behind", async () => {
    const world = await given();
    world.host.pool.freeBytes = 10n * MIB;

    expect(await codeOf(create(world, { parameters: { provisioning: "thick" } }))).toBe("RESOURCE_EXHAUSTED");
    expect(world.host.tree(`${STATE}/volumes`)).toEqual([]);
    expect(world.host.tree(`${STATE}/tmp/controller`)).toEqual([]);
  });

  test("a name of 128 bytes of other alphabets is created, listed and deleted", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "é".repeat(64));

    expect((await world.controller.listVolumes({})).entries).toHaveLength(1);
    await world.controller.deleteVolume({ volumeId });
    expect((await world.controller.listVolumes({})).entries).toHaveLength(0);
  });

  test("a volume in use is not deleted, and its data is untouched", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    world.host.writeData(TARGET, "diary", "precious");

    expect(await codeOf(world.controller.deleteVolume({ volumeId }))).toBe("FAILED_PRECONDITION");
    expect(world.host.readData(TARGET, "diary")).toBe("precious");
  });

  test("20 creates of one name at once give one volume; 200 of distinct names all succeed", async () => {
    const world = await given();

    const same = await Promise.all(Array.from({ length: 20 }, () => createdVolume(world, "one")));
    await Promise.all(Array.from({ length: 200 }, (_, index) => createdVolume(world, `v${index}`)));

    expect(new Set(same).size).toBe(1);
    expect((await world.controller.listVolumes({})).entries).toHaveLength(201);
  });

  test("requisite topology: our node is fine, another is out of reach", async () => {
    const world = await given();
    const at = (node: string) => ({
      name: node,
      accessibilityRequirements: {
        requisite: [{ segments: { "topology.loop.csi.mooring.dev/node": node } }],
      },
    });

    expect(await codeOf(create(world, at("node-1")))).toBe("OK");
    expect(await codeOf(create(world, at("node-9")))).toBe("RESOURCE_EXHAUSTED");
  });
});

describe("attach", () => {
  const attach = ({ controller }: World, volumeId: string, nodeId: string, mode = Mode.SINGLE_NODE_WRITER) =>
    controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: mountCapability({ mode }) });
  const nodesOf = async ({ controller }: World) =>
    (await controller.listVolumes({})).entries.map(({ status }) => status?.publishedNodeIds);

  test("the same context after a restart; lists show who has it", async () => {
    const world = await given({ nodes: ["node-2"] });
    const volumeId = await createdVolume(world, "a");
    const before = await attach(world, volumeId, "node-2");

    const after = await world.restart();

    expect(await attach(after, volumeId, "node-2")).toEqual(before);
    expect(await nodesOf(after)).toEqual([["node-2"]]);
    await after.controller.controllerUnpublishVolume({ volumeId, nodeId: "" });
    expect(await nodesOf(after)).toEqual([[]]);
  });

  test("a single-node volume names the node that has it; many readers may share", async () => {
    const world = await given({ nodes: ["node-2"] });
    const [one, many] = [await createdVolume(world, "one"), await createdVolume(world, "many")];
    await attach(world, one, "node-1");

    expect(await messageOf(attach(world, one, "node-2"))).toContain("node-1");
    expect(await codeOf(attach(world, one, "node-2"))).toBe("FAILED_PRECONDITION");
    await attach(world, many, "node-1", Mode.MULTI_NODE_READER_ONLY);
    expect(await codeOf(attach(world, many, "node-2", Mode.MULTI_NODE_READER_ONLY))).toBe("OK");
    expect(await codeOf(world.controller.controllerUnpublishVolume({ volumeId: one, nodeId: "gone" }))).toBe(
      "OK",
    );
  });

  test("beyond the limit is refused, also when three come at once; one less and it works", async () => {
    const world = await given({ attachLimit: 2 });
    const ids = await Promise.all(["a", "b", "c"].map((name) => createdVolume(world, name)));

    const codes = await Promise.all(ids.map((id) => codeOf(attach(world, id, "node-1"))));

    expect(codes.sort()).toEqual(["OK", "OK", "RESOURCE_EXHAUSTED"]);
    const held = (await world.controller.listVolumes({})).entries.find(
      ({ status }) => status?.publishedNodeIds.length === 1,
    );
    await world.controller.controllerUnpublishVolume({
      volumeId: held?.volume?.volumeId ?? "",
      nodeId: "node-1",
    });
    const free = await Promise.all(ids.map((id) => codeOf(attach(world, id, "node-1"))));
    expect(free.filter((code) => code === "OK")).toHaveLength(2);
  });

  test("a volume that is staged there is not detached", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await staged(world, volumeId);

    expect(await codeOf(world.controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" }))).toBe(
      "FAILED_PRECONDITION",
    );
  });
});

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

  test("what is written survives unpublish, unstage, a restart and a new stage", async () => {
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
  ] as const)("an image with %s is never formatted, and no device is left", async (_, content) => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    Object.assign(world.host.image(imagePath(volumeId)), { content });

    expect(await codeOf(staged(world, volumeId))).toBe("FAILED_PRECONDITION");
    expect(world.host.image(imagePath(volumeId)).content).toEqual(content);
    expect(await world.host.loops.list()).toEqual([]);
  });

  test("each step needs the one before", async () => {
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

  test("a read-only target beside a writable one", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    await publish(world, volumeId, { targetPath: "/kubelet/pods/reader", readonly: true });

    world.host.writeData(TARGET, "diary", "precious");

    expect(() => world.host.writeData("/kubelet/pods/reader", "x", "y")).toThrow("EROFS");
    expect(world.host.readData("/kubelet/pods/reader", "diary")).toBe("precious");
    expect(await codeOf(publish(world, volumeId, { readonly: true }))).toBe("ALREADY_EXISTS");
  });

  test("a target in use stays and is reported; once free it goes", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await published(world, volumeId);
    world.host.busy(TARGET, true);

    expect(await codeOf(world.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET }))).toBe("INTERNAL");
    world.host.busy(TARGET, false);
    expect(await codeOf(world.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET }))).toBe("OK");
    expect(await world.host.files.stat(TARGET)).toBeUndefined();
  });

  test("after a reboot everything can be taken down, and staged again", async () => {
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

describe("growth and health", () => {
  const expand = ({ controller }: World, volumeId: string, capacityRange: object) =>
    controller.controllerExpandVolume({ volumeId, capacityRange });

  test("volumes never shrink, and say so only when they must", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");

    expect((await expand(world, volumeId, { requiredBytes: 1n })).capacityBytes).toBe(64n * MIB);
    expect(await codeOf(expand(world, volumeId, { limitBytes: 32n * MIB }))).toBe("OUT_OF_RANGE");
    expect(await codeOf(expand(world, volumeId, { requiredBytes: 5_000n * GIB }))).toBe("OUT_OF_RANGE");
  });

  test("grown while published: the device follows, twice is fine", async () => {
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

  test("where the kernel forbids growth of a mounted filesystem, the answer says when it happens, and it does", async () => {
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

  test("one damaged record: the others work, that one is abnormal and is not deleted", async () => {
    const world = await given();
    const [good, bad] = [await createdVolume(world, "good"), await createdVolume(world, "bad")];
    await world.host.files.writeDurable(`${STATE}/volumes/${bad}/meta.json`, '{"id":"vol-');

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

  test("cut while mounted: restored larger it has the data and the room; smaller is refused; the source may be gone", async () => {
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

  test("a group has one moment; members go only with it; one missing source means nothing was made", async () => {
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
});

describe("concurrency", () => {
  test("a tool that hangs keeps its volume busy, and nothing else", async () => {
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

  test("a full disk while a record is written: refused, and the old state stands", async () => {
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
