import { describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { MIB } from "./options.ts";
import {
  blockCapability,
  codeOf,
  createdVolume,
  given,
  mountCapability,
  published,
  released,
  STAGING,
  TARGET,
} from "./stage.testing.ts";

/** What csi-sanity asks of a driver at work; the real program asks the same over a socket. */

const MODIFY = { modifyVolume: true, mutableParameterNames: ["iops"] };
const capability = mountCapability();
const SIZE = { requiredBytes: 64n * MIB };

const snapshotSource = (snapshotId: string) => ({
  type: { case: "snapshot" as const, value: { snapshotId } },
});
const volumeSource = (volumeId: string) => ({ type: { case: "volume" as const, value: { volumeId } } });

describe("csi-sanity: capabilities", () => {
  const rpcs = (capabilities: readonly { type: { value?: { type: number } | undefined } }[]) =>
    capabilities.map(({ type }) => type.value?.type ?? 0).sort((a, b) => a - b);

  test("everything of the specification is offered, and no number that csi-sanity does not know", async () => {
    const { controller, node, group, identity } = await given(MODIFY);

    expect(rpcs((await controller.controllerGetCapabilities({})).capabilities)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    ]);
    expect(rpcs((await node.nodeGetCapabilities({})).capabilities)).toEqual([1, 2, 3, 4, 5]);
    expect(rpcs((await group.groupControllerGetCapabilities({})).capabilities)).toEqual([1]);
    expect((await identity.getPluginCapabilities({})).capabilities).toHaveLength(4);
    expect((await identity.getPluginInfo({})).name).toMatch(/^[A-Za-z][A-Za-z0-9._-]{0,61}[A-Za-z]$/);
    expect((await identity.probe({})).ready).toBe(true);
  });

  test("what is switched off is not offered and answers UNIMPLEMENTED", async () => {
    const { controller } = await given({
      attach: false,
      controllerExpansion: false,
      listSnapshots: false,
      volumeCondition: false,
    });

    expect(rpcs((await controller.controllerGetCapabilities({})).capabilities)).toEqual([
      1, 3, 4, 5, 7, 12, 13, 15,
    ]);
    expect(await codeOf(controller.controllerPublishVolume({}))).toBe("UNIMPLEMENTED");
    expect(await codeOf(controller.controllerModifyVolume({}))).toBe("UNIMPLEMENTED");
    expect(await codeOf(controller.listSnapshots({}))).toBe("UNIMPLEMENTED");
  });

  test("a node says its id, its limit as it is now, and where it is", async () => {
    const { node } = await given({ attachLimit: 5 });

    expect(await node.nodeGetInfo({})).toMatchObject({
      nodeId: "node-1",
      maxVolumesPerNode: 5n,
      accessibleTopology: { segments: { "topology.loop.csi.mooring.dev/node": "node-1" } },
    });
  });
});

describe("csi-sanity: volumes and snapshots", () => {
  test("2: the same name and size twice is the same volume; twice the size exists already", async () => {
    const { controller } = await given();
    const wish = (bytes: bigint) => ({
      name: "a",
      volumeCapabilities: [capability],
      capacityRange: { requiredBytes: bytes, limitBytes: bytes },
    });

    const first = await controller.createVolume(wish(64n * MIB));
    const second = await controller.createVolume(wish(64n * MIB));

    expect(first.volume?.capacityBytes).toBe(64n * MIB);
    expect(second.volume?.volumeId).toBe(first.volume?.volumeId);
    expect(await codeOf(controller.createVolume(wish(128n * MIB)))).toBe("ALREADY_EXISTS");
  });

  test("lists count one more after a create and one less after a delete, and page on from where they ended", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "source");
    const ids = [];
    for (const name of ["s1", "s2", "s3", "s4", "s5"]) {
      ids.push(
        (await world.controller.createSnapshot({ name, sourceVolumeId: volumeId })).snapshot?.snapshotId,
      );
    }

    const first = await world.controller.listSnapshots({ maxEntries: 2 });
    const rest = await world.controller.listSnapshots({ startingToken: first.nextToken });

    expect(first.entries).toHaveLength(2);
    expect(rest.entries).toHaveLength(3);
    expect(rest.nextToken).toBe("");
    expect(new Set([...first.entries, ...rest.entries].map(({ snapshot }) => snapshot?.snapshotId))).toEqual(
      new Set(ids),
    );
    expect((await world.controller.listVolumes({})).entries).toHaveLength(1);
    await world.controller.deleteVolume({ volumeId });
    expect((await world.controller.listVolumes({})).entries).toHaveLength(0);
  });

  test("snapshots are found by id, by source and by both; nothing unknown is an error", async () => {
    const world = await given();
    const [a, b] = [await createdVolume(world, "a"), await createdVolume(world, "b")];
    const { snapshot } = await world.controller.createSnapshot({ name: "sa", sourceVolumeId: a });
    await world.controller.createSnapshot({ name: "sb", sourceVolumeId: b });
    const found = async (filter: object) => (await world.controller.listSnapshots(filter)).entries.length;

    expect(await found({ snapshotId: snapshot?.snapshotId })).toBe(1);
    expect(await found({ sourceVolumeId: b })).toBe(1);
    expect(await found({ snapshotId: snapshot?.snapshotId, sourceVolumeId: b })).toBe(0);
    expect(await found({ snapshotId: "unknown" })).toBe(0);
    expect(await found({ sourceVolumeId: "unknown" })).toBe(0);
  });

  test("a snapshot repeats itself for its source and refuses another", async () => {
    const world = await given();
    const [a, b] = [await createdVolume(world, "a"), await createdVolume(world, "b")];

    const first = await world.controller.createSnapshot({ name: "s", sourceVolumeId: a });
    const again = await world.controller.createSnapshot({ name: "s", sourceVolumeId: a });

    expect(again.snapshot).toEqual(first.snapshot);
    expect(first.snapshot?.readyToUse).toBe(true);
    expect(await codeOf(world.controller.createSnapshot({ name: "s", sourceVolumeId: b }))).toBe(
      "ALREADY_EXISTS",
    );
  });

  test("a snapshot with a name of 128 bytes is made once and found by its id", async () => {
    const world = await given();
    const sourceVolumeId = await createdVolume(world, "a");
    const wish = { name: "x".repeat(128), sourceVolumeId };

    const { snapshot } = await world.controller.createSnapshot(wish);

    expect((await world.controller.createSnapshot(wish)).snapshot).toEqual(snapshot);
    const { snapshotId = "" } = snapshot ?? {};
    expect((await world.controller.getSnapshot({ snapshotId })).snapshot).toEqual(snapshot);
    expect(snapshot).toMatchObject({ sourceVolumeId, sizeBytes: 64n * MIB, readyToUse: true });
    expect(snapshot?.creationTime?.seconds).toBeGreaterThanOrEqual(0n);
  });

  test.each([
    ["made without any", {}],
    ["made with some", { iops: "1" }],
  ])("parameters of a volume %s can be modified, unknown ones cannot", async (_, mutableParameters) => {
    const { controller } = await given(MODIFY);
    const wish = { name: "a", volumeCapabilities: [capability], capacityRange: SIZE, mutableParameters };
    const volumeId = (await controller.createVolume(wish)).volume?.volumeId ?? "";
    const modify = (parameters: Record<string, string>) =>
      codeOf(controller.controllerModifyVolume({ volumeId, mutableParameters: parameters }));

    expect(await modify({ iops: "7" })).toBe("OK");
    expect(await modify({ noSuchParameter: "x" })).toBe("INVALID_ARGUMENT");
  });

  test("volumes from snapshots and volumes say what they came from", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
    const wish = { volumeCapabilities: [capability], capacityRange: SIZE };

    const restored = await world.controller.createVolume({
      ...wish,
      name: "r",
      volumeContentSource: snapshotSource(snapshot?.snapshotId ?? ""),
    });
    const clone = await world.controller.createVolume({
      ...wish,
      name: "c",
      volumeContentSource: volumeSource(volumeId),
    });
    const cloneAgain = await world.controller.createVolume({
      ...wish,
      name: "c",
      volumeContentSource: volumeSource(volumeId),
    });

    expect(restored.volume?.contentSource?.type.case).toBe("snapshot");
    expect(clone.volume?.contentSource?.type.case).toBe("volume");
    expect(cloneAgain.volume).toEqual(clone.volume);
  });

  test("growth answers exactly the size asked for", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");

    const grown = await world.controller.controllerExpandVolume({
      volumeId,
      capacityRange: { requiredBytes: 128n * MIB },
    });

    expect(grown).toMatchObject({ capacityBytes: 128n * MIB, nodeExpansionRequired: true });
  });

  test("12: published to a node already: the same again is fine, another readonly is not", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    const publish = (readonly: boolean) =>
      world.controller.controllerPublishVolume({
        volumeId,
        nodeId: "node-1",
        volumeCapability: capability,
        readonly,
      });

    const first = await publish(false);

    for (let again = 0; again < 10; again++) expect(await publish(false)).toEqual(first);
    expect(await codeOf(publish(true))).toBe("ALREADY_EXISTS");
  });
});

describe("csi-sanity: a node at work", () => {
  for (const [access, wanted] of [
    ["mount", capability],
    ["block", blockCapability()],
  ] as const) {
    test(`17, 31: the whole way with a ${access} volume, every call ten times`, async () => {
      const world = await given();
      const volumeId = await createdVolume(world, "a", { capability: wanted });

      for (let again = 0; again < 10; again++) await published(world, volumeId, { capability: wanted });

      const { usage } = await world.node.nodeGetVolumeStats({ volumeId, volumePath: TARGET });
      expect(usage).toHaveLength(access === "mount" ? 2 : 1);
      expect(await world.host.loops.list()).toHaveLength(1);
      expect(await world.host.mounts.list()).toHaveLength(access === "mount" ? 2 : 1);
      expect(await codeOf(world.node.nodeGetVolumeStats({ volumeId, volumePath: "some/path" }))).toBe(
        "NOT_FOUND",
      );
      for (let again = 0; again < 3; again++) await released(world, volumeId);
      expect(await world.host.files.stat(TARGET)).toBeUndefined();
      expect(await world.host.loops.list()).toEqual([]);
      for (let again = 0; again < 3; again++) await world.controller.deleteVolume({ volumeId });
    });
  }

  test("21: one writer means one target, and a refused target leaves nothing behind", async () => {
    const world = await given();
    const single = mountCapability({ mode: Mode.SINGLE_NODE_SINGLE_WRITER });
    const volumeId = await createdVolume(world, "a", { capability: single });
    await published(world, volumeId, { capability: single });
    const other = "/kubelet/pods/other_target";

    const code = await codeOf(
      world.node.nodePublishVolume({
        volumeId,
        stagingTargetPath: STAGING,
        targetPath: other,
        volumeCapability: single,
      }),
    );

    expect(code).toBe("FAILED_PRECONDITION");
    expect(await world.host.files.stat(other)).toBeUndefined();
  });

  test("grown by the controller before it is staged, it needs no growth on the node", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await world.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: 128n * MIB } });
    await published(world, volumeId);

    const { capacityBytes } = await world.node.nodeExpandVolume({
      volumeId,
      volumePath: TARGET,
      capacityRange: { requiredBytes: 128n * MIB },
    });

    expect(capacityBytes).toBe(128n * MIB);
  });
});
