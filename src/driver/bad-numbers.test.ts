import { describe, expect, test } from "vitest";
import { SnapshotMetadata, type VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import { createMemoryChannel } from "../csi/memory-channel.ts";
import { createClient } from "../csi/methods.ts";
import { silentLogger } from "../base/log.ts";
import { MIB } from "./options.ts";
import {
  codeOf,
  createdVolume,
  given,
  mountCapability,
  MINUTE,
  published,
  STAGING,
  TARGET,
  type World,
} from "./stage.testing.ts";

/** Numbers and references that nobody should send, wherever a request has room for one: the right code, nothing touched. */

const mount = mountCapability();
const LARGEST = 9_223_372_036_854_775_807n;

async function picture({ host, controller }: World): Promise<unknown> {
  return {
    tree: host.tree(""),
    loops: (await host.loops.list()).map(({ path }) => path),
    mounts: (await host.mounts.list()).map(({ path }) => path),
    volumes: (await controller.listVolumes({})).entries.map(({ volume }) => volume?.capacityBytes),
  };
}

describe("sizes", () => {
  for (const [what, capacityRange, code] of [
    ["the largest number", { requiredBytes: LARGEST }, "OUT_OF_RANGE"],
    ["one that rounding up would wrap", { requiredBytes: LARGEST - 1n, limitBytes: LARGEST }, "OUT_OF_RANGE"],
    ["a negative one", { requiredBytes: -1n }, "INVALID_ARGUMENT"],
    ["the smallest number", { requiredBytes: -LARGEST - 1n }, "INVALID_ARGUMENT"],
    ["a negative limit", { requiredBytes: 128n * MIB, limitBytes: -1n }, "INVALID_ARGUMENT"],
    ["more than its own limit", { requiredBytes: 128n * MIB, limitBytes: 1n }, "INVALID_ARGUMENT"],
  ] as const) {
    test(`${what}, in create, clone, restore and growth on both sides: ${code}`, async () => {
      const world = await given();
      const { controller, node } = world;
      const volumeId = await createdVolume(world, "a");
      const { snapshot } = await controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
      await published(world, volumeId);
      const before = await picture(world);
      const snapshotId = snapshot?.snapshotId ?? "";
      const wish = { name: "b", volumeCapabilities: [mount], capacityRange };
      const from = (type: object) => ({ ...wish, volumeContentSource: { type: type as never } });

      const codes = await Promise.all(
        [
          controller.createVolume(wish),
          controller.createVolume(from({ case: "volume", value: { volumeId } })),
          controller.createVolume(from({ case: "snapshot", value: { snapshotId } })),
          controller.controllerExpandVolume({ volumeId, capacityRange }),
          node.nodeExpandVolume({ volumeId, volumePath: TARGET, capacityRange }),
        ].map(codeOf),
      );

      expect(codes).toEqual(codes.map(() => code));
      expect(await picture(world)).toEqual(before);
    });
  }
});

describe("enum numbers of another version", () => {
  // On the wire any number may stand there, whatever the type says.
  const numbers: unknown = [0, 8, 99, -1, 2_147_483_647];
  for (const mode of numbers as Mode[]) {
    test(`access mode ${mode} is refused wherever a capability is asked for`, async () => {
      const world = await given();
      const { controller, node } = world;
      const volumeId = await createdVolume(world, "a");
      await published(world, volumeId);
      const before = await picture(world);
      const volumeCapability = mountCapability({ mode });
      const at = { volumeId, stagingTargetPath: STAGING, volumeCapability };
      const bigger = { capacityRange: { requiredBytes: 128n * MIB } };

      const codes = await Promise.all(
        [
          controller.createVolume({ name: "b", volumeCapabilities: [mount, volumeCapability] }),
          controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability }),
          controller.controllerExpandVolume({ volumeId, ...bigger, volumeCapability }),
          node.nodeStageVolume(at),
          node.nodePublishVolume({ ...at, targetPath: "/kubelet/pods/b" }),
        ].map(codeOf),
      );

      expect(codes).toEqual(codes.map(() => "INVALID_ARGUMENT"));
      expect(await picture(world)).toEqual(before);
    });
  }
});

describe("references that are paths or nonsense", () => {
  const IDS = [
    "../../etc",
    "..",
    "/etc/passwd",
    "snap-../../../etc",
    "a\u0000b",
    "x".repeat(100_000),
    "--help",
  ];

  test.each(IDS.map((id) => [JSON.stringify(id).slice(0, 40), id] as const))(
    "%s is no snapshot, no group, no source and no node",
    async (_, id) => {
      const world = await given({ snapshotMetadata: true });
      const { controller, group } = world;
      const volumeId = await createdVolume(world, "bystander");
      const before = await picture(world);
      const from = (type: object) =>
        controller.createVolume({
          name: "b",
          volumeCapabilities: [mount],
          volumeContentSource: { type: type as never },
        });
      const channel = createMemoryChannel({ clock: world.clock, log: silentLogger }, world.driver.methods);
      const metadata = async () => {
        const blocks = createClient(SnapshotMetadata, channel).getMetadataAllocated(
          { snapshotId: id },
          MINUTE,
        );
        for await (const _ of blocks) return;
      };

      const codes = {
        get: await codeOf(controller.getSnapshot({ snapshotId: id })),
        group: await codeOf(group.getVolumeGroupSnapshot({ groupSnapshotId: id })),
        restore: await codeOf(from({ case: "snapshot", value: { snapshotId: id } })),
        clone: await codeOf(from({ case: "volume", value: { volumeId: id } })),
        metadata: await codeOf(metadata()),
        node: await codeOf(
          controller.controllerPublishVolume({ volumeId, nodeId: id, volumeCapability: mount }),
        ),
        listed: (await controller.listSnapshots({ snapshotId: id })).entries.length,
      };

      expect(codes).toEqual({
        ...{ get: "NOT_FOUND", group: "NOT_FOUND", restore: "NOT_FOUND", clone: "NOT_FOUND" },
        ...{ metadata: "NOT_FOUND", node: "NOT_FOUND", listed: 0 },
      });
      expect(await picture(world)).toEqual(before);
    },
  );
});
