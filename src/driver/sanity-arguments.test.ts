import { describe, expect, test } from "vitest";
import { MIB } from "./options.ts";
import {
  codeOf,
  createdVolume,
  given,
  mountCapability,
  STAGING,
  TARGET,
  type World,
} from "./stage.testing.ts";

/** The cases of csi-sanity about missing fields and unknown objects, as a table: what it asks and the code it wants. */

const MODIFY = { modifyVolume: true, mutableParameterNames: ["iops"] };
const capability = mountCapability();
const SIZE = { requiredBytes: 64n * MIB };

type Case = readonly [name: string, code: string, call: (world: World) => Promise<unknown>];

const snapshotSource = (snapshotId: string) => ({
  type: { case: "snapshot" as const, value: { snapshotId } },
});
const volumeSource = (volumeId: string) => ({ type: { case: "volume" as const, value: { volumeId } } });

const MISSING_AND_UNKNOWN: readonly Case[] = [
  [
    "ListVolumes with a token of somebody else",
    "ABORTED",
    ({ controller }) => controller.listVolumes({ startingToken: "invalid-token" }),
  ],
  [
    "CreateVolume without name",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.createVolume({ volumeCapabilities: [capability] }),
  ],
  [
    "CreateVolume without capabilities",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.createVolume({ name: "a" }),
  ],
  [
    "CreateVolume from an unknown snapshot",
    "NOT_FOUND",
    ({ controller }) =>
      controller.createVolume({
        name: "a",
        volumeCapabilities: [capability],
        volumeContentSource: snapshotSource("non-existing-snapshot-id"),
      }),
  ],
  [
    "CreateVolume from an unknown volume",
    "NOT_FOUND",
    ({ controller }) =>
      controller.createVolume({
        name: "a",
        volumeCapabilities: [capability],
        volumeContentSource: volumeSource("non-existing-volume-id"),
      }),
  ],
  [
    "CreateVolume with an unknown mutable parameter",
    "INVALID_ARGUMENT",
    ({ controller }) =>
      controller.createVolume({
        name: "a",
        volumeCapabilities: [capability],
        mutableParameters: { noSuchParameter: "x" },
      }),
  ],
  [
    "CreateVolume with a known one",
    "OK",
    ({ controller }) =>
      controller.createVolume({
        name: "a",
        volumeCapabilities: [capability],
        mutableParameters: { iops: "1" },
      }),
  ],
  [
    "CreateVolume with a name of 128 bytes",
    "OK",
    ({ controller }) => controller.createVolume({ name: "n".repeat(128), volumeCapabilities: [capability] }),
  ],
  ["DeleteVolume without id", "INVALID_ARGUMENT", ({ controller }) => controller.deleteVolume({})],
  [
    "DeleteVolume of an unknown id",
    "OK",
    ({ controller }) => controller.deleteVolume({ volumeId: "fake-vol-id" }),
  ],
  [
    "ValidateVolumeCapabilities without id",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.validateVolumeCapabilities({ volumeCapabilities: [capability] }),
  ],
  [
    "ValidateVolumeCapabilities without capabilities",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.validateVolumeCapabilities({ volumeId: "unknown" }),
  ],
  [
    "ValidateVolumeCapabilities of an unknown volume",
    "NOT_FOUND",
    ({ controller }) =>
      controller.validateVolumeCapabilities({ volumeId: "unknown", volumeCapabilities: [capability] }),
  ],
  [
    "ControllerPublish without volume",
    "INVALID_ARGUMENT",
    ({ controller }) =>
      controller.controllerPublishVolume({ nodeId: "node-1", volumeCapability: capability }),
  ],
  [
    "ControllerPublish without node",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.controllerPublishVolume({ volumeId: "id", volumeCapability: capability }),
  ],
  [
    "ControllerPublish without capability",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.controllerPublishVolume({ volumeId: "id", nodeId: "fake" }),
  ],
  [
    "ControllerPublish of an unknown volume",
    "NOT_FOUND",
    ({ controller }) =>
      controller.controllerPublishVolume({ volumeId: "id", nodeId: "node-1", volumeCapability: capability }),
  ],
  [
    "ControllerPublish to an unknown node",
    "NOT_FOUND",
    async (world) =>
      world.controller.controllerPublishVolume({
        volumeId: await createdVolume(world, "a"),
        nodeId: "some-fake-node-id",
        volumeCapability: capability,
      }),
  ],
  [
    "ControllerUnpublish without volume",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.controllerUnpublishVolume({}),
  ],
  [
    "ControllerUnpublish of an unknown volume",
    "OK",
    ({ controller }) => controller.controllerUnpublishVolume({ volumeId: "gone", nodeId: "gone" }),
  ],
  ["GetSnapshot without id", "INVALID_ARGUMENT", ({ controller }) => controller.getSnapshot({})],
  [
    "GetSnapshot of an unknown id",
    "NOT_FOUND",
    ({ controller }) => controller.getSnapshot({ snapshotId: "unknown" }),
  ],
  ["DeleteSnapshot without id", "INVALID_ARGUMENT", ({ controller }) => controller.deleteSnapshot({})],
  [
    "DeleteSnapshot of an unknown id",
    "OK",
    ({ controller }) => controller.deleteSnapshot({ snapshotId: "reallyfakesnapshotid" }),
  ],
  [
    "CreateSnapshot without name",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.createSnapshot({ sourceVolumeId: "x" }),
  ],
  [
    "CreateSnapshot without source",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.createSnapshot({ name: "x" }),
  ],
  [
    "ControllerExpand without id",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.controllerExpandVolume({ capacityRange: SIZE }),
  ],
  [
    "ControllerExpand without anything",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.controllerExpandVolume({}),
  ],
  [
    "ControllerExpand of an unknown volume",
    "NOT_FOUND",
    ({ controller }) => controller.controllerExpandVolume({ volumeId: "x", capacityRange: SIZE }),
  ],
  [
    "ControllerModify without id",
    "INVALID_ARGUMENT",
    ({ controller }) => controller.controllerModifyVolume({ mutableParameters: { iops: "1" } }),
  ],
  [
    "ControllerModify of an unknown volume, before its keys",
    "NOT_FOUND",
    ({ controller }) =>
      controller.controllerModifyVolume({
        volumeId: "non-existing-volume-id",
        mutableParameters: { noSuchParameter: "x" },
      }),
  ],
  [
    "ControllerModify with an unknown key",
    "INVALID_ARGUMENT",
    async (world) =>
      world.controller.controllerModifyVolume({
        volumeId: await createdVolume(world, "a"),
        mutableParameters: { noSuchParameter: "x" },
      }),
  ],
  [
    "ControllerModify with a known key",
    "OK",
    async (world) =>
      world.controller.controllerModifyVolume({
        volumeId: await createdVolume(world, "a"),
        mutableParameters: { iops: "7" },
      }),
  ],
  [
    "ControllerGetVolume of an unknown volume",
    "NOT_FOUND",
    ({ controller }) => controller.controllerGetVolume({ volumeId: "x" }),
  ],
  [
    "NodePublish without id",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodePublishVolume({ targetPath: TARGET, volumeCapability: capability }),
  ],
  [
    "NodePublish without target",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodePublishVolume({ volumeId: "id", volumeCapability: capability }),
  ],
  [
    "NodePublish without capability",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodePublishVolume({ volumeId: "id", targetPath: TARGET }),
  ],
  [
    "NodeUnpublish without id",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeUnpublishVolume({ targetPath: TARGET }),
  ],
  [
    "NodeUnpublish without target",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeUnpublishVolume({ volumeId: "id" }),
  ],
  [
    "NodeUnpublish of what was never there",
    "OK",
    ({ node }) => node.nodeUnpublishVolume({ volumeId: "id", targetPath: TARGET }),
  ],
  [
    "NodeStage without id",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeStageVolume({ stagingTargetPath: STAGING, volumeCapability: capability }),
  ],
  [
    "NodeStage without path",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeStageVolume({ volumeId: "id", volumeCapability: capability }),
  ],
  [
    "NodeStage without capability",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeStageVolume({ volumeId: "id", stagingTargetPath: STAGING }),
  ],
  [
    "NodeUnstage without id",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeUnstageVolume({ stagingTargetPath: STAGING }),
  ],
  ["NodeUnstage without path", "INVALID_ARGUMENT", ({ node }) => node.nodeUnstageVolume({ volumeId: "id" })],
  [
    "NodeUnstage of what was never there",
    "OK",
    ({ node }) => node.nodeUnstageVolume({ volumeId: "id", stagingTargetPath: STAGING }),
  ],
  [
    "NodeGetVolumeStats without id",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeGetVolumeStats({ volumePath: "some/path" }),
  ],
  [
    "NodeGetVolumeStats without path",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeGetVolumeStats({ volumeId: "id" }),
  ],
  [
    "NodeGetVolumeStats of an unknown volume at a relative path",
    "NOT_FOUND",
    ({ node }) => node.nodeGetVolumeStats({ volumeId: "id", volumePath: "some/path" }),
  ],
  [
    "NodeExpand without id",
    "INVALID_ARGUMENT",
    ({ node }) => node.nodeExpandVolume({ volumePath: "some/path" }),
  ],
  [
    "NodeExpand without path",
    "INVALID_ARGUMENT",
    async (world) => world.node.nodeExpandVolume({ volumeId: await createdVolume(world, "a") }),
  ],
  [
    "NodeExpand of an unknown volume at a relative path",
    "NOT_FOUND",
    ({ node }) => node.nodeExpandVolume({ volumeId: "id", volumePath: "some/path" }),
  ],
  [
    "CreateVolumeGroupSnapshot without name",
    "INVALID_ARGUMENT",
    ({ group }) => group.createVolumeGroupSnapshot({ sourceVolumeIds: ["x"] }),
  ],
  ["GetVolumeGroupSnapshot without id", "INVALID_ARGUMENT", ({ group }) => group.getVolumeGroupSnapshot({})],
  [
    "GetVolumeGroupSnapshot of an unknown id",
    "NOT_FOUND",
    ({ group }) => group.getVolumeGroupSnapshot({ groupSnapshotId: "unknown" }),
  ],
  [
    "DeleteVolumeGroupSnapshot without id",
    "INVALID_ARGUMENT",
    ({ group }) => group.deleteVolumeGroupSnapshot({}),
  ],
  [
    "DeleteVolumeGroupSnapshot of an unknown id",
    "OK",
    ({ group }) => group.deleteVolumeGroupSnapshot({ groupSnapshotId: "unknown" }),
  ],
];

describe("csi-sanity: missing fields and unknown objects", () => {
  for (const [name, code, call] of MISSING_AND_UNKNOWN) {
    test(`${name}: ${code}`, async () => {
      const world = await given(MODIFY);

      expect(await codeOf(call(world))).toBe(code);
    });
  }
});
