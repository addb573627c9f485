import { describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { createFakeHost } from "./fake-host.testing.ts";
import { HostError } from "./host.ts";
import { MIB } from "./options.ts";
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

/** Codes that the protocol asks for by method, beside those of csi-sanity and of the scenarios. */

const MODIFY = { modifyVolume: true, mutableParameterNames: ["iops", "tier"] };
const mount = mountCapability();
const block = blockCapability();
const ELSEWHERE = "/kubelet/pods/elsewhere";

describe("an access type that is not the volume's", () => {
  test("a source of the other type makes no volume", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
    const from = (type: object) =>
      codeOf(
        world.controller.createVolume({
          name: "b",
          volumeCapabilities: [block],
          volumeContentSource: { type: type as never },
        }),
      );

    expect(await from({ case: "volume", value: { volumeId } })).toBe("INVALID_ARGUMENT");
    expect(await from({ case: "snapshot", value: { snapshotId: snapshot?.snapshotId } })).toBe(
      "INVALID_ARGUMENT",
    );
    expect((await world.controller.listVolumes({})).entries).toHaveLength(1);
  });

  test("is refused by stage, publish and expand, and nothing is left", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    const { node, controller, host } = world;
    await controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability: mount });
    const request = { volumeId, stagingTargetPath: STAGING, volumeCapability: block };

    expect(await codeOf(node.nodeStageVolume(request))).toBe("FAILED_PRECONDITION");
    expect(await host.loops.list()).toEqual([]);
    await staged(world, volumeId);
    expect(await codeOf(node.nodePublishVolume({ ...request, targetPath: TARGET }))).toBe(
      "FAILED_PRECONDITION",
    );
    expect(await host.files.stat(TARGET)).toBeUndefined();
    const bigger = { volumeId, capacityRange: { requiredBytes: 128n * MIB }, volumeCapability: block };
    expect(await codeOf(controller.controllerExpandVolume(bigger))).toBe("INVALID_ARGUMENT");
  });

  test("is not confirmed, and the answer says why; what fits is confirmed as it was asked", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    const ask = (volumeCapabilities: object[]) =>
      world.controller.validateVolumeCapabilities({
        volumeId,
        volumeCapabilities,
        volumeContext: { a: "b" },
        parameters: { provisioning: "thin" },
      });

    const refused = await ask([mount, block]);
    const confirmed = await ask([mount]);

    expect(refused.confirmed).toBeUndefined();
    expect(refused.message).not.toBe("");
    expect(confirmed.confirmed).toMatchObject({
      volumeContext: { a: "b" },
      volumeCapabilities: [{ accessMode: { mode: 1 }, accessType: { case: "mount" } }],
      parameters: { provisioning: "thin" },
    });
  });
});

describe("parameters that may change", () => {
  test("one key that is not known, and none is changed; other ones at the same name exist already", async () => {
    const world = await given(MODIFY);
    const wish = (iops: string) => ({
      name: "a",
      volumeCapabilities: [mount],
      mutableParameters: { iops },
    });
    const { volume } = await world.controller.createVolume(wish("1"));
    const volumeId = volume?.volumeId ?? "";
    const record = () => world.host.files.read(`${STATE}/volumes/${volumeId}/meta.json`);
    const before = await record();

    expect(
      await codeOf(
        world.controller.controllerModifyVolume({
          volumeId,
          mutableParameters: { iops: "7", colour: "red" },
        }),
      ),
    ).toBe("INVALID_ARGUMENT");
    expect(await record()).toBe(before);
    expect(await codeOf(world.controller.createVolume(wish("2")))).toBe("ALREADY_EXISTS");
    await world.controller.controllerModifyVolume({ volumeId, mutableParameters: { tier: "gold" } });
    expect(JSON.parse((await record()) ?? "")).toMatchObject({
      mutableParameters: { iops: "1", tier: "gold" },
    });
  });
});

describe("groups", () => {
  test("the name with other sources exists already; ids that are not its members are refused, and it stays", async () => {
    const world = await given();
    const ids = await Promise.all(["a", "b"].map((name) => createdVolume(world, name)));
    const { groupSnapshot } = await world.group.createVolumeGroupSnapshot({
      name: "g",
      sourceVolumeIds: ids,
    });
    const groupSnapshotId = groupSnapshot?.groupSnapshotId ?? "";
    const [one, two] = (groupSnapshot?.snapshots ?? []).map(({ snapshotId }) => snapshotId);
    const { group } = world;

    expect(
      await codeOf(group.createVolumeGroupSnapshot({ name: "g", sourceVolumeIds: ids.slice(0, 1) })),
    ).toBe("ALREADY_EXISTS");
    for (const snapshotIds of [[one!], [one!, two!, "snap-x"], ["snap-x", two!]]) {
      const claim = { groupSnapshotId, snapshotIds };
      expect(await codeOf(group.getVolumeGroupSnapshot(claim))).toBe("INVALID_ARGUMENT");
      expect(await codeOf(group.deleteVolumeGroupSnapshot(claim))).toBe("INVALID_ARGUMENT");
    }
    const members = { groupSnapshotId, snapshotIds: [two!, one!] };
    expect((await group.getVolumeGroupSnapshot(members)).groupSnapshot?.snapshots).toHaveLength(2);
    expect(await codeOf(group.deleteVolumeGroupSnapshot(members))).toBe("OK");
  });
});

test("a node grows no volume past its own maximum", async () => {
  const world = await given({ maxVolumeBytesNode: 100n * MIB });
  const volumeId = await createdVolume(world, "a");
  await published(world, volumeId);
  const grow = (requiredBytes: bigint) =>
    codeOf(world.node.nodeExpandVolume({ volumeId, volumePath: TARGET, capacityRange: { requiredBytes } }));

  expect(await grow(101n * MIB)).toBe("OUT_OF_RANGE");
  expect(await grow(64n * MIB)).toBe("OK");
});

describe("what Kubernetes sends along", () => {
  test("kubelet names the first access mode where the attacher named them all: both are right", async () => {
    const world = await given();
    const shared = mountCapability({ mode: Mode.MULTI_NODE_MULTI_WRITER });
    const volumeId = await createdVolume(world, "a", { capability: shared });
    await world.controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability: shared });

    const request = { volumeId, stagingTargetPath: STAGING, volumeCapability: mount };
    expect(await codeOf(world.node.nodeStageVolume(request))).toBe("OK");
    expect(await codeOf(world.node.nodePublishVolume({ ...request, targetPath: TARGET }))).toBe("OK");
  });

  test("the pod's name and a token that is new each time change nothing about a publish", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    await staged(world, volumeId);
    const publish = (token: string) =>
      codeOf(
        world.node.nodePublishVolume({
          volumeId,
          stagingTargetPath: STAGING,
          targetPath: TARGET,
          volumeCapability: mount,
          volumeContext: {
            "storage.kubernetes.io/csiProvisionerIdentity": "1-8081-x",
            "csi.storage.k8s.io/pod.name": "web",
            "csi.storage.k8s.io/ephemeral": "false",
            "csi.storage.k8s.io/serviceAccount.tokens": token,
          },
          secrets: { token },
        }),
      );

    expect([await publish("first"), await publish("second")]).toEqual(["OK", "OK"]);
    expect(await world.host.mounts.list()).toHaveLength(2);
    expect((await world.host.files.read(`${STATE}/volumes/${volumeId}/meta.json`)) ?? "").not.toContain(
      "second",
    );
  });
});

describe("41: a full disk at any call that writes a record: refused with the code for it, and again afterwards it works; what lets go is not refused", () => {
  const range = { capacityRange: { requiredBytes: 128n * MIB } };
  type Prepared = World & { readonly volumeId: string; readonly snapshotId: string };
  const CALLS: readonly (readonly [
    string,
    "attached" | "free" | "staged" | "published",
    (world: Prepared) => Promise<unknown>,
  ])[] = [
    ["create", "free", (world) => createdVolume(world, "new")],
    [
      "attach",
      "free",
      ({ controller, volumeId }) =>
        controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability: mount }),
    ],
    [
      "detach",
      "attached",
      ({ controller, volumeId }) => controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" }),
    ],
    [
      "expand",
      "free",
      ({ controller, volumeId }) => controller.controllerExpandVolume({ volumeId, ...range }),
    ],
    [
      "modify",
      "free",
      ({ controller, volumeId }) =>
        controller.controllerModifyVolume({ volumeId, mutableParameters: { iops: "7" } }),
    ],
    [
      "snapshot",
      "free",
      ({ controller, volumeId }) => controller.createSnapshot({ name: "new", sourceVolumeId: volumeId }),
    ],
    ["delete snapshot", "free", ({ controller, snapshotId }) => controller.deleteSnapshot({ snapshotId })],
    [
      "group",
      "free",
      ({ group, volumeId }) => group.createVolumeGroupSnapshot({ name: "g", sourceVolumeIds: [volumeId] }),
    ],
    [
      "stage",
      "attached",
      ({ node, volumeId }) =>
        node.nodeStageVolume({ volumeId, stagingTargetPath: STAGING, volumeCapability: mount }),
    ],
    [
      "publish",
      "staged",
      ({ node, volumeId }) =>
        node.nodePublishVolume({
          volumeId,
          stagingTargetPath: STAGING,
          targetPath: ELSEWHERE,
          volumeCapability: mount,
        }),
    ],
    [
      "unpublish",
      "published",
      ({ node, volumeId }) => node.nodeUnpublishVolume({ volumeId, targetPath: TARGET }),
    ],
    [
      "unstage",
      "staged",
      ({ node, volumeId }) => node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING }),
    ],
    ["delete", "free", ({ controller, volumeId }) => controller.deleteVolume({ volumeId })],
  ];

  const LET_GO = ["detach", "delete snapshot", "unpublish", "unstage", "delete"];

  test.each(CALLS)("%s", async (name, state, call) => {
    const host = createFakeHost();
    const world = await given(MODIFY, host);
    const volumeId = await createdVolume(world, "a");
    const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
    const prepared = { ...world, volumeId, snapshotId: snapshot?.snapshotId ?? "" };
    const attach = { volumeId, nodeId: "node-1", volumeCapability: mount };
    if (state === "attached") await world.controller.controllerPublishVolume(attach);
    if (state === "staged") await staged(world, volumeId);
    if (state === "published") await published(world, volumeId);
    const write = host.files.writeDurable.bind(host.files);
    host.files.writeDurable = async () => {
      throw new HostError("NoSpace", "write: ENOSPC");
    };

    const full = await codeOf(call(prepared));
    host.files.writeDurable = write;

    expect(full).toBe(LET_GO.includes(name) ? "OK" : "RESOURCE_EXHAUSTED");
    expect(await codeOf(call(prepared))).toBe("OK");
  });
});
