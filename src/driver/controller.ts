import type { Controller, GetCapacityRequest, ValidateVolumeCapabilitiesRequest } from "../csi/gen/csi_pb.ts";
import { ControllerServiceCapability_RPC_Type as Rpc } from "../csi/gen/csi_pb.ts";
import type { Handlers } from "../csi/methods.ts";
import { createAttachments } from "./attachments.ts";
import { readyVolume, refuseDamaged, type Context } from "./context.ts";
import { invalid, notFound, quoted } from "./errors.ts";
import { controllerHealthCalls } from "./health-calls.ts";
import { controllerHealth, DAMAGED, toCondition } from "./health.ts";
import { page } from "./lists.ts";
import { expandVolume, modifyVolume } from "./modify.ts";
import { BLOCK_BYTES, MIN_VOLUME_BYTES, topologyKey } from "./options.ts";
import type { VolumeRecord } from "./records.ts";
import { createSnapshot, deleteSnapshot, toSnapshot } from "./snapshots.ts";
import { checkPresent, combine, toCapability } from "./validate.ts";
import { createVolume, deleteVolume, toVolume } from "./volumes.ts";

/** The Controller service: volumes and snapshots as files, attachments as records. */
export function createController(context: Context): Handlers<typeof Controller> {
  const { settings } = context;
  const attachments = createAttachments(context);
  const all: Handlers<typeof Controller> = {
    controllerGetCapabilities: async () => ({
      capabilities: controllerCapabilities(context).map((type) => ({
        type: { case: "rpc" as const, value: { type } },
      })),
    }),
    createVolume: async (request) => ({ volume: toVolume(context, await createVolume(context, request)) }),
    deleteVolume: async ({ volumeId }) => (await deleteVolume(context, volumeId), {}),
    controllerPublishVolume: (request) => attachments.publish(request),
    controllerUnpublishVolume: async (request) => (await attachments.unpublish(request), {}),
    validateVolumeCapabilities: (request) => validateCapabilities(context, request),
    listVolumes: (request) => listVolumes(context, request),
    controllerGetVolume: ({ volumeId }) => getVolume(context, volumeId),
    getCapacity: (request) => getCapacity(context, request),
    createSnapshot: async (request) => ({ snapshot: toSnapshot(await createSnapshot(context, request)) }),
    deleteSnapshot: async ({ snapshotId }) => (await deleteSnapshot(context, snapshotId), {}),
    getSnapshot: ({ snapshotId }) => getSnapshot(context, snapshotId),
    listSnapshots: async (request) => listSnapshots(context, request),
    controllerExpandVolume: (request) => expandVolume(context, request),
    controllerModifyVolume: async (request) => (await modifyVolume(context, request), {}),
    ...(settings.volumeHealth ? controllerHealthCalls(context) : {}),
  };
  const off = [
    ...(settings.attach ? [] : (["controllerPublishVolume", "controllerUnpublishVolume"] as const)),
    ...(settings.controllerExpansion ? [] : (["controllerExpandVolume"] as const)),
    ...(settings.modifyVolume ? [] : (["controllerModifyVolume"] as const)),
    ...(settings.listSnapshots ? [] : (["listSnapshots"] as const)),
  ];
  return Object.fromEntries(Object.entries(all).filter(([name]) => !off.some((one) => one === name)));
}

function controllerCapabilities({ settings }: Context): readonly Rpc[] {
  return [
    Rpc.CREATE_DELETE_VOLUME,
    ...(settings.attach
      ? [Rpc.PUBLISH_UNPUBLISH_VOLUME, Rpc.PUBLISH_READONLY, Rpc.LIST_VOLUMES_PUBLISHED_NODES]
      : []),
    Rpc.LIST_VOLUMES,
    Rpc.GET_CAPACITY,
    Rpc.CREATE_DELETE_SNAPSHOT,
    ...(settings.listSnapshots ? [Rpc.LIST_SNAPSHOTS] : []),
    Rpc.CLONE_VOLUME,
    ...(settings.controllerExpansion ? [Rpc.EXPAND_VOLUME] : []),
    ...(settings.volumeCondition ? [Rpc.VOLUME_CONDITION] : []),
    Rpc.GET_VOLUME,
    Rpc.SINGLE_NODE_MULTI_WRITER,
    ...(settings.modifyVolume ? [Rpc.MODIFY_VOLUME] : []),
    Rpc.GET_SNAPSHOT,
    ...(settings.volumeHealth ? [Rpc.GET_VOLUME_HEALTH, Rpc.LIST_VOLUME_HEALTH] : []),
  ];
}

async function validateCapabilities(context: Context, request: ValidateVolumeCapabilitiesRequest) {
  const { volumeId, volumeCapabilities, volumeContext, parameters, mutableParameters } = request;
  checkPresent(volumeId, "volume_id");
  if (volumeCapabilities.length === 0) throw invalid("volume_capabilities is missing");
  const record = await readyVolume(context, volumeId);
  const problem = unsupported(record, request);
  if (problem !== undefined) return { message: problem };
  return { confirmed: { volumeCapabilities, volumeContext, parameters, mutableParameters } };
}

/** Not an error here: the answer says what does not fit. */
function unsupported(record: VolumeRecord, { volumeCapabilities }: ValidateVolumeCapabilitiesRequest) {
  try {
    const { accessType, fsType } = combine(volumeCapabilities);
    volumeCapabilities.forEach((capability) => toCapability(capability));
    if (accessType !== record.accessType) return `the volume is a ${record.accessType} volume`;
    if (fsType !== "" && record.fsType !== "" && fsType !== record.fsType)
      return `the volume is ${record.fsType}`;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function entryOf(context: Context, record: VolumeRecord) {
  return {
    volume: toVolume(context, record),
    status: {
      publishedNodeIds: record.attachments.map(({ nodeId }) => nodeId),
      ...(context.settings.volumeCondition
        ? { volumeCondition: toCondition(await controllerHealth(context, record)) }
        : {}),
    },
  };
}

function damagedEntry(id: string) {
  return { volume: { volumeId: id }, status: { volumeCondition: toCondition(DAMAGED) } };
}

async function listVolumes(context: Context, request: { maxEntries: number; startingToken: string }) {
  const { volumes } = context;
  const ready = volumes.all().filter(({ phase }) => phase === "ready");
  const all = [
    ...ready.map((record) => ({ id: record.id, entry: () => entryOf(context, record) })),
    ...volumes.damaged().map((id) => ({ id, entry: async () => damagedEntry(id) })),
  ];
  const { entries, nextToken } = page(all, request);
  return { entries: await Promise.all(entries.map(({ entry }) => entry())), nextToken };
}

async function getVolume(context: Context, id: string) {
  checkPresent(id, "volume_id");
  if (context.volumes.damaged().includes(id)) return damagedEntry(id);
  return entryOf(context, await readyVolume(context, id));
}

async function getSnapshot({ snapshots }: Context, id: string) {
  checkPresent(id, "snapshot_id");
  const record = snapshots.get(id);
  if (record === undefined) await refuseDamaged(snapshots, "snapshot", id);
  if (record?.phase !== "ready") throw notFound(`snapshot ${quoted(id)} does not exist`);
  return { snapshot: toSnapshot(record) };
}

function listSnapshots(
  { snapshots }: Context,
  request: { maxEntries: number; startingToken: string; snapshotId: string; sourceVolumeId: string },
) {
  const { snapshotId, sourceVolumeId } = request;
  const matching = snapshots
    .all()
    .filter(
      ({ id, phase, sourceVolumeId: source }) =>
        phase === "ready" &&
        (snapshotId === "" || id === snapshotId) &&
        (sourceVolumeId === "" || source === sourceVolumeId),
    );
  const { entries, nextToken } = page(matching, request);
  return { entries: entries.map((record) => ({ snapshot: toSnapshot(record) })), nextToken };
}

async function getCapacity(context: Context, request: GetCapacityRequest) {
  const { settings, pools, host, paths } = context;
  const minimumVolumeSize = minimumOf(context, request);
  const segments = Object.entries(request.accessibleTopology?.segments ?? {});
  const nodes = [settings.nodeId, ...settings.nodes];
  const elsewhere = segments.some(
    ([key, value]) => key.toLowerCase() === topologyKey(settings).toLowerCase() && !nodes.includes(value),
  );
  const { freeBytes } = await host.images.pool(paths.root);
  const { kind = "" } = request.parameters;
  const free = elsewhere ? 0n : pools.enabled || kind !== "" ? pooled(context, kind) : freeBytes;
  const maximumVolumeSize = free < settings.maxVolumeBytes ? free : settings.maxVolumeBytes;
  return { availableCapacity: free, maximumVolumeSize, minimumVolumeSize };
}

function minimumOf({ settings }: Context, { volumeCapabilities: [capability] }: GetCapacityRequest): bigint {
  if (capability?.accessType.case === "block") return BLOCK_BYTES;
  const named = capability?.accessType.value?.fsType;
  return MIN_VOLUME_BYTES[named === "ext4" || named === "xfs" ? named : settings.defaultFsType];
}

function pooled({ pools, settings }: Context, kind: string): bigint {
  if (kind !== "") return pools.freeBytes(kind) ?? 0n;
  return [...settings.capacity.keys()].reduce((sum, one) => sum + (pools.freeBytes(one) ?? 0n), 0n);
}
