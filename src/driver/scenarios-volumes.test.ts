import { describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { GIB, MIB } from "./options.ts";
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

/**
 * Scenarios of the driver's specification, by their numbers, that need no real device: volumes and who may use them. Those
 * that do are in test/e2e.
 */

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
  test("1: a thin image has its size and no blocks; a thick one has them all", async () => {
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
  ])("3: the same name with %s exists already", async (_, other) => {
    const world = await given();
    await createdVolume(world, "a");

    expect(await codeOf(create(world, other))).toBe("ALREADY_EXISTS");
  });

  test("2, 3: the same again is the same volume on one image; from another source it exists already", async () => {
    const world = await given();
    const origin = await createdVolume(world, "origin");
    const from = (volumeId: string) => ({
      capacityRange: { requiredBytes: 64n * MIB },
      volumeContentSource: { type: { case: "volume" as const, value: { volumeId } } },
    });
    const plain = await createdVolume(world, "a");
    const { volume } = await create(world, { name: "copy", ...from(origin) });

    expect(await createdVolume(world, "a")).toBe(plain);
    expect((await create(world, { name: "copy", ...from(origin) })).volume).toEqual(volume);
    expect(await codeOf(create(world, from(origin)))).toBe("ALREADY_EXISTS");
    expect(await codeOf(create(world, { name: "copy", ...from(plain) }))).toBe("ALREADY_EXISTS");
    expect(await codeOf(createdVolume(world, "copy"))).toBe("ALREADY_EXISTS");
    expect(world.host.tree(STATE).filter((path) => path.endsWith("image.raw"))).toHaveLength(3);
  });

  test.each([
    ["5: nothing", {}, GIB],
    ["5: a limit only", { limitBytes: 100n * MIB + 5n }, 100n * MIB],
    ["4: 100 MiB and a byte", { requiredBytes: 100n * MIB + 1n }, 100n * MIB + 4_096n],
    ["less than a filesystem needs", { requiredBytes: 1n }, 16n * MIB],
    [
      "4: a byte that rounding does not fit",
      { requiredBytes: 100n * MIB + 1n, limitBytes: 100n * MIB + 1n },
      "OUT_OF_RANGE",
    ],
    ["too little for a filesystem", { limitBytes: 1n * MIB }, "OUT_OF_RANGE"],
    ["more than the largest", { requiredBytes: 2_048n * GIB }, "OUT_OF_RANGE"],
    ["the largest number there is", { requiredBytes: 9_223_372_036_854_775_807n }, "OUT_OF_RANGE"],
    ["a negative size", { requiredBytes: -1n }, "INVALID_ARGUMENT"],
    ["more required than allowed", { requiredBytes: 64n * MIB, limitBytes: 32n * MIB }, "INVALID_ARGUMENT"],
  ])("%s, asked for", async (_, capacityRange, wanted) => {
    const world = await given();

    if (typeof wanted === "string") expect(await codeOf(create(world, { capacityRange }))).toBe(wanted);
    else expect((await create(world, { capacityRange })).volume?.capacityBytes).toBe(wanted);
  });

  test("6: a full pool refuses, and takes again after a delete", async () => {
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

  test("8: a name of 128 bytes of other alphabets is created, listed and deleted", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "é".repeat(64));

    expect((await world.controller.listVolumes({})).entries).toHaveLength(1);
    await world.controller.deleteVolume({ volumeId });
    expect((await world.controller.listVolumes({})).entries).toHaveLength(0);
  });

  test("9: a volume that is attached, staged or published is not deleted, and its data is untouched; free, it goes, twice", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    const remove = () => codeOf(world.controller.deleteVolume({ volumeId }));

    await published(world, volumeId);
    world.host.writeData(TARGET, "diary", "precious");
    expect(await remove()).toBe("FAILED_PRECONDITION");
    expect(world.host.readData(TARGET, "diary")).toBe("precious");
    await world.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET });
    expect(await remove()).toBe("FAILED_PRECONDITION");
    await world.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING });
    expect(await remove()).toBe("FAILED_PRECONDITION");
    await world.controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" });

    for (let again = 0; again < 2; again++) expect(await remove()).toBe("OK");
    expect(world.host.tree(`${STATE}/volumes`)).toEqual([]);
  });

  test("43: 20 creates of one name at once give one volume; 200 of distinct names all succeed", async () => {
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

  test("11: the same context again, and after a restart; lists show who has it", async () => {
    const world = await given({ nodes: ["node-2"] });
    const volumeId = await createdVolume(world, "a");
    const before = await attach(world, volumeId, "node-2");

    expect(await attach(world, volumeId, "node-2")).toEqual(before);
    const after = await world.restart();

    expect(await attach(after, volumeId, "node-2")).toEqual(before);
    expect(await nodesOf(after)).toEqual([["node-2"]]);
    await after.controller.controllerUnpublishVolume({ volumeId, nodeId: "" });
    expect(await nodesOf(after)).toEqual([[]]);
  });

  test("12: a single-node volume names the node that has it; many readers may share", async () => {
    const world = await given({ nodes: ["node-2"] });
    const [one, many] = [await createdVolume(world, "one"), await createdVolume(world, "many")];
    await attach(world, one, "node-1");

    expect(await messageOf(attach(world, one, "node-2"))).toContain("node-1");
    expect(await codeOf(attach(world, one, "node-2"))).toBe("FAILED_PRECONDITION");
    await attach(world, many, "node-1", Mode.MULTI_NODE_READER_ONLY);
    expect(await codeOf(attach(world, many, "node-2", Mode.MULTI_NODE_READER_ONLY))).toBe("OK");
  });

  test("13, 14: what is not attached there is detached; without a node, everywhere; lists follow each step", async () => {
    const world = await given({ nodes: ["node-2"] });
    const volumeId = await createdVolume(world, "a");
    const detach = (request: object) => codeOf(world.controller.controllerUnpublishVolume(request));
    const readers = Mode.MULTI_NODE_READER_ONLY;

    expect(await nodesOf(world)).toEqual([[]]);
    await attach(world, volumeId, "node-1", readers);
    expect(await nodesOf(world)).toEqual([["node-1"]]);
    await attach(world, volumeId, "node-2", readers);
    expect(await nodesOf(world)).toEqual([["node-1", "node-2"]]);
    expect(await detach({ volumeId: "vol-unknown", nodeId: "node-1" })).toBe("OK");
    expect(await detach({ volumeId, nodeId: "unknown" })).toBe("OK");
    expect(await nodesOf(world)).toEqual([["node-1", "node-2"]]);
    for (let again = 0; again < 2; again++) expect(await detach({ volumeId, nodeId: "node-1" })).toBe("OK");
    expect(await nodesOf(world)).toEqual([["node-2"]]);
    await attach(world, volumeId, "node-1", readers);
    expect(await detach({ volumeId, nodeId: "" })).toBe("OK");
    expect(await nodesOf(world)).toEqual([[]]);
  });

  test("15: beyond the limit is refused, also when three come at once; one less and it works", async () => {
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
