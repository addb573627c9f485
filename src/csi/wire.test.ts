import { create, fromBinary, toBinary, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import * as csi from "./gen/csi_pb.ts";
import * as registration from "./gen/pluginregistration_pb.ts";
import { pathOf } from "./methods.ts";

/** Bytes worked out by hand from the field numbers and types of the protocol: tag, length, value. */

interface Vector {
  readonly claim: string;
  readonly hex: string;
  readonly encode: () => Uint8Array;
  readonly again: (bytes: Uint8Array) => Uint8Array;
}

function vector<S extends DescMessage>(
  claim: string,
  schema: S,
  init: MessageInitShape<S>,
  hex: string,
): Vector {
  return {
    claim,
    hex: hex.replaceAll(" ", ""),
    encode: () => toBinary(schema, create(schema, init)),
    again: (bytes) => toBinary(schema, fromBinary(schema, bytes)),
  };
}

const vectors = [
  vector("ready absent is no byte at all", csi.ProbeResponseSchema, {}, ""),
  vector("ready false is a wrapper without content", csi.ProbeResponseSchema, { ready: false }, "0a00"),
  vector("ready true", csi.ProbeResponseSchema, { ready: true }, "0a02 0801"),
  vector(
    "publish: an empty oneof member is sent, maps are entries",
    csi.ControllerPublishVolumeRequestSchema,
    {
      volumeId: "v",
      nodeId: "n",
      volumeCapability: {
        accessType: { case: "block", value: {} },
        accessMode: { mode: csi.VolumeCapability_AccessMode_Mode.SINGLE_NODE_WRITER },
      },
      readonly: true,
      secrets: { k: "s" },
      volumeContext: { a: "b" },
    },
    "0a0176 12016e 1a06 0a00 1a02 0801 2001 2a06 0a016b 120173 3206 0a0161 120162",
  ),
  vector(
    "64 bits: above 2^32, and ten bytes for a negative",
    csi.CapacityRangeSchema,
    { requiredBytes: 1n << 40n, limitBytes: -1n },
    "08 808080808020 10 ffffffffffffffffff01",
  ),
  vector(
    "a snapshot with its timestamp",
    csi.SnapshotSchema,
    {
      sizeBytes: 5n,
      snapshotId: "s",
      sourceVolumeId: "v",
      creationTime: { seconds: 1n, nanos: 2 },
      readyToUse: true,
      groupSnapshotId: "g",
    },
    "0805 120173 1a0176 2204 0801 1002 2801 320167",
  ),
  vector(
    "a capability is a message in a oneof in a list",
    csi.ControllerGetCapabilitiesResponseSchema,
    {
      capabilities: [
        {
          type: {
            case: "rpc",
            value: { type: csi.ControllerServiceCapability_RPC_Type.PUBLISH_UNPUBLISH_VOLUME },
          },
        },
      ],
    },
    "0a04 0a02 0802",
  ),
  vector(
    "wrapped sizes: absent, set, and set to zero",
    csi.GetCapacityResponseSchema,
    { availableCapacity: 1n, maximumVolumeSize: 2n, minimumVolumeSize: 0n },
    "0801 1202 0802 1a00",
  ),
  vector(
    "a page of volumes",
    csi.ListVolumesResponseSchema,
    {
      entries: [
        {
          volume: { capacityBytes: 1n, volumeId: "v" },
          status: { publishedNodeIds: ["n"], volumeCondition: { abnormal: true, message: "m" } },
        },
      ],
      nextToken: "t",
    },
    "0a13 0a05 0801 120176 120a 0a016e 1205 0801 12016d 120174",
  ),
  vector(
    "a volume from a snapshot",
    csi.CreateVolumeRequestSchema,
    {
      name: "n",
      volumeContentSource: { type: { case: "snapshot", value: { snapshotId: "s" } } },
      mutableParameters: { a: "b" },
    },
    "0a016e 3205 0a03 0a0173 4206 0a0161 120162",
  ),
  vector(
    "node publish: eight fields, none of them where stage has it",
    csi.NodePublishVolumeRequestSchema,
    {
      volumeId: "v",
      publishContext: { a: "b" },
      stagingTargetPath: "/s",
      targetPath: "/t",
      volumeCapability: {
        accessMode: { mode: csi.VolumeCapability_AccessMode_Mode.SINGLE_NODE_MULTI_WRITER },
      },
      readonly: true,
      secrets: { a: "b" },
      volumeContext: { a: "b" },
    },
    "0a0176 1206 0a0161 120162 1a02 2f73 2202 2f74 2a04 1a02 0807 3001 3a06 0a0161 120162 4206 0a0161 120162",
  ),
  vector(
    "a node with its limit and topology",
    csi.NodeGetInfoResponseSchema,
    { nodeId: "n", maxVolumesPerNode: 3n, accessibleTopology: { segments: { k: "v" } } },
    "0a016e 1003 1a08 0a06 0a016b 120176",
  ),
  vector(
    "usage in inodes",
    csi.VolumeUsageSchema,
    { available: 1n, total: 2n, used: 3n, unit: csi.VolumeUsage_Unit.INODES },
    "0801 1002 1803 2002",
  ),
  vector(
    "changed blocks between two snapshots",
    csi.GetMetadataDeltaRequestSchema,
    { baseSnapshotId: "b", targetSnapshotId: "t", startingOffset: 1n, maxResults: 2 },
    "0a0162 120174 1801 2002",
  ),
  vector(
    "a plugin that registers",
    registration.PluginInfoSchema,
    { type: "CSIPlugin", name: "d", endpoint: "/e", supportedVersions: ["1.0.0"] },
    "0a09 435349506c7567696e 120164 1a02 2f65 2205 312e302e30",
  ),
  vector("a refusal", registration.RegistrationStatusSchema, { error: "e" }, "120165"),
];

describe("bytes on the wire", () => {
  for (const { claim, hex, encode, again } of vectors) {
    test(claim, () => {
      expect(Buffer.from(encode()).toString("hex")).toBe(hex);
      expect(Buffer.from(again(Buffer.from(hex, "hex"))).toString("hex")).toBe(hex);
    });
  }

  test("what this version does not know passes through unchanged", () => {
    const newer = Buffer.from("0a0176" + "1a04" + "1a020863" + "c23e03616263", "hex");

    const message = fromBinary(csi.ControllerPublishVolumeRequestSchema, newer);

    expect(message.volumeCapability?.accessMode?.mode).toBe(99);
    expect(Buffer.from(toBinary(csi.ControllerPublishVolumeRequestSchema, message))).toEqual(newer);
  });

  for (const [claim, hex] of [
    ["a length past the end", "0a05 76"],
    ["a varint that never ends", "20 ffffffffffffffffffffff"],
    ["a string that is not UTF-8", "0a02 fffe"],
    ["a tag of zero", "00"],
    ["a nested message cut short", "1a06 0a00"],
  ] as const) {
    test(`${claim} is no message`, () => {
      const bytes = Buffer.from(hex.replaceAll(" ", ""), "hex");

      expect(() => fromBinary(csi.ControllerPublishVolumeRequestSchema, bytes)).toThrow();
    });
  }

  test("methods are where the protocol has them", () => {
    expect(pathOf(csi.Controller.method.controllerPublishVolume)).toBe(
      "/csi.v1.Controller/ControllerPublishVolume",
    );
    expect(pathOf(registration.Registration.method.getInfo)).toBe("/pluginregistration.Registration/GetInfo");
    const counts = [csi.Identity, csi.Controller, csi.Node, csi.GroupController, csi.SnapshotMetadata];
    expect(counts.map(({ methods }) => methods.length)).toEqual([3, 17, 10, 4, 2]);
  });
});
