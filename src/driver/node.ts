import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Node, NodeGetVolumeStatsRequest, VolumeUsageSchema } from "../csi/gen/csi_pb.ts";
import { NodeServiceCapability_RPC_Type as Rpc, VolumeUsage_Unit as Unit } from "../csi/gen/csi_pb.ts";
import type { Handlers } from "../csi/methods.ts";
import { readyVolume, type Context } from "./context.ts";
import { deviceOf, isDeviceOf, keepDevice, readonlyDevicesOf, usingDevice } from "./devices.ts";
import { failedPrecondition, notFound, outOfRange, toAnswer } from "./errors.ts";
import { nodeHealthCalls } from "./health-calls.ts";
import { nodeHealth, toCondition } from "./health.ts";
import { isSmaller } from "./filesystem.ts";
import { isEphemeral, knownAs, publishEphemeral, unpublishEphemeral } from "./ephemeral.ts";
import { HostError, type LoopDevice } from "./host.ts";
import { topologyKey } from "./options.ts";
import { samePlace, toPlace } from "./paths.ts";
import { isPublished, publishVolume, targetAt, unpublishVolume } from "./publish.ts";
import type { NodeRecord } from "./records.ts";
import { isStaged, stageVolume, unstageVolume } from "./stage.ts";
import { checkPresent, toRange } from "./validate.ts";
import type { NodeExpandVolumeRequest } from "../csi/gen/csi_pb.ts";

/** The Node service: what happens to a volume on this machine. */
export function createNode(context: Context): Handlers<typeof Node> {
  const { settings } = context;
  return {
    nodeStageVolume: async (request) => (await stageVolume(context, request), {}),
    nodeUnstageVolume: async (request) => (await unstageVolume(context, request), {}),
    nodePublishVolume: async (request) => {
      if (isEphemeral(request)) await publishEphemeral(context, request);
      else await publishVolume(context, request);
      return {};
    },
    nodeUnpublishVolume: async (request) => {
      await unpublishVolume(context, request);
      await unpublishEphemeral(context, request);
      return {};
    },
    nodeGetVolumeStats: (request) => volumeStats(context, request),
    nodeExpandVolume: async (request) => ({ capacityBytes: await expandOnNode(context, request) }),
    nodeGetCapabilities: async () => ({
      capabilities: nodeCapabilities(context).map((type) => ({
        type: { case: "rpc" as const, value: { type } },
      })),
    }),
    nodeGetInfo: async () => ({
      nodeId: settings.nodeId,
      maxVolumesPerNode: BigInt(Math.max(0, settings.attachLimit)),
      ...(settings.topology
        ? { accessibleTopology: { segments: { [topologyKey(settings)]: settings.nodeId } } }
        : {}),
    }),
    ...(settings.volumeHealth ? nodeHealthCalls(context) : {}),
  };
}

function nodeCapabilities({ settings }: Context): readonly Rpc[] {
  return [
    Rpc.STAGE_UNSTAGE_VOLUME,
    Rpc.GET_VOLUME_STATS,
    ...(settings.nodeExpansion ? [Rpc.EXPAND_VOLUME] : []),
    ...(settings.volumeCondition ? [Rpc.VOLUME_CONDITION] : []),
    Rpc.SINGLE_NODE_MULTI_WRITER,
    ...(settings.volumeHealth ? [Rpc.GET_VOLUME_HEALTH, Rpc.GET_STORAGE_HEALTH] : []),
  ];
}

/** The record and device of a volume that is live at `path`, staged or published; NOT_FOUND otherwise. */
async function liveAt(
  context: Context,
  id: string,
  path: string,
): Promise<{ record: NodeRecord; device: LoopDevice }> {
  await readyVolume(context, id);
  const record = context.staged.get(id);
  const device = record === undefined ? undefined : await deviceOf(context, context.paths.volumeImage(id));
  const gone = notFound(`volume ${id} is not at this path`);
  if (record === undefined || device === undefined) throw gone;
  if (!isDeviceOf(record, device)) throw gone;
  const place = toPlace(path);
  const target = await targetAt(context, record, place);
  const live =
    target !== undefined
      ? await isPublished(context, target, device)
      : (await samePlace(context, [record.stagingPath], place)) !== undefined &&
        (await isStaged(context, record));
  if (!live) throw gone;
  return { record, device };
}

async function volumeStats(context: Context, { volumeId, volumePath }: NodeGetVolumeStatsRequest) {
  checkPresent(volumeId, "volume_id");
  checkPresent(volumePath, "volume_path");
  const { record, device } = await liveAt(context, knownAs(volumeId), volumePath);
  const usage =
    record.capability.accessType === "block"
      ? [{ total: await deviceBytes(context, device), unit: Unit.BYTES }]
      : await filesystemUsage(context, record.stagingPath);
  if (!context.settings.volumeCondition) return { usage };
  return { usage, volumeCondition: toCondition(await nodeHealth(context, record)) };
}

async function deviceBytes({ host }: Context, device: LoopDevice): Promise<bigint> {
  const release = await host.loops.pin(device);
  try {
    return await host.loops.sizeBytes(device.path);
  } finally {
    await release();
  }
}

async function filesystemUsage(
  { host }: Context,
  path: string,
): Promise<MessageInitShape<typeof VolumeUsageSchema>[]> {
  const usage = await host.mounts.usage(path);
  return [
    { unit: Unit.BYTES, total: usage.totalBytes, used: usage.usedBytes, available: usage.availableBytes },
    { unit: Unit.INODES, total: usage.totalInodes, used: usage.usedInodes, available: usage.freeInodes },
  ];
}

async function expandOnNode(context: Context, request: NodeExpandVolumeRequest): Promise<bigint> {
  const { volumeId: id, volumePath: path } = request;
  checkPresent(id, "volume_id");
  checkPresent(path, "volume_path");
  const range = toRange(request.capacityRange);
  return context.locks.hold([{ key: `volume/${id}` }], async () => {
    await keepStaged(context, id);
    const { record, device } = await liveAt(context, id, path);
    if (range.requiredBytes > context.settings.maxVolumeBytesNode) {
      throw outOfRange(`above the largest volume of this node, ${context.settings.maxVolumeBytesNode} bytes`);
    }
    try {
      return await usingDevice(context, device, () => growDevice(context, record, device));
    } catch (error) {
      throw toAnswer(explained(error), `expand volume ${id}`);
    }
  });
}

async function keepStaged(context: Context, id: string): Promise<void> {
  const record = context.staged.get(id);
  try {
    if (record !== undefined) await keepDevice(context, record);
  } catch (error) {
    throw toAnswer(error, `expand volume ${id}`);
  }
}

async function growDevice(context: Context, record: NodeRecord, device: LoopDevice): Promise<bigint> {
  const { loops } = context.host;
  await loops.refresh(device.path);
  for (const spare of await readonlyDevicesOf(context, device))
    if (!spare.autoclear) await usingDevice(context, spare, () => loops.refresh(spare.path));
  if (record.capability.accessType === "mount") await growFilesystem(context, record, device);
  return loops.sizeBytes(device.path);
}

async function growFilesystem(context: Context, record: NodeRecord, device: LoopDevice): Promise<void> {
  const { filesystems } = context.host;
  const content = await filesystems.probe(device.path);
  const type = content.kind === "filesystem" ? content.type : content.kind;
  if (type !== "ext4" && type !== "xfs")
    throw failedPrecondition(
      `the device of volume ${record.id} shows ${type}, not a filesystem that can grow`,
    );
  if (await isSmaller(context, device, type)) await filesystems.grow(device.path, type, record.stagingPath);
}

function explained(error: unknown): unknown {
  if (!(error instanceof HostError) || error.code !== "NotPermitted") return error;
  return new HostError(
    "NotPermitted",
    "this machine may not grow a mounted ext4 (CAP_SYS_RESOURCE is missing); the volume grows when it is staged next",
    { cause: error },
  );
}
