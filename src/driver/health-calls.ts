import type {
  Controller,
  ControllerListVolumeHealthRequest,
  Node,
  NodeGetVolumeHealthRequest,
  VolumeHealthErrorType,
} from "../csi/gen/csi_pb.ts";
import { StorageHealthErrorType } from "../csi/gen/csi_pb.ts";
import type { Handlers } from "../csi/methods.ts";
import { readyVolume, type Context } from "./context.ts";
import { knownAs } from "./ephemeral.ts";
import { notFound } from "./errors.ts";
import { controllerHealth, DAMAGED, nodeHealth, poolProblem, type Health } from "./health.ts";
import { page } from "./lists.ts";
import { samePlace, toPlace } from "./paths.ts";
import { targetAt } from "./publish.ts";
import type { NodeRecord } from "./records.ts";
import { checkPresent } from "./validate.ts";

/** The health calls that come after CSI 1.12 (`--volume-health`). Consumers of 1.12 do not know their numbers. */

export function controllerHealthCalls(context: Context) {
  return {
    controllerGetVolumeHealth: async ({ volumeId }) => {
      checkPresent(volumeId, "volume_id");
      return { volumeHealth: toVolumeHealth(volumeId, await healthOf(context, volumeId)) };
    },
    controllerListVolumeHealth: (request) => listHealth(context, request),
  } satisfies Handlers<typeof Controller>;
}

async function healthOf(context: Context, id: string): Promise<Health> {
  if (context.volumes.damaged().includes(id)) return DAMAGED;
  return controllerHealth(context, await readyVolume(context, id));
}

/** Only volumes with a problem. The page is cut after looking, so an empty one is the last. */
async function listHealth(context: Context, request: ControllerListVolumeHealthRequest) {
  const { volumes } = context;
  const ready = volumes.all().filter(({ phase }) => phase === "ready");
  const looked = await Promise.all(
    ready.map(async (record) => ({ id: record.id, health: await controllerHealth(context, record) })),
  );
  const damaged = volumes.damaged().map((id) => ({ id, health: DAMAGED }));
  const ill = [...looked, ...damaged].filter(({ health }) => health.problem !== undefined);
  const { entries, nextToken } = page(ill, request);
  return { entries: entries.map(({ id, health }) => toVolumeHealth(id, health)), nextToken };
}

export function nodeHealthCalls(context: Context) {
  return {
    nodeGetVolumeHealth: async (request) => ({ volumeHealth: await healthOnNode(context, request) }),
    nodeGetStorageHealth: async () => ({ backendHealth: await storageHealth(context) }),
  } satisfies Handlers<typeof Node>;
}

async function healthOnNode(context: Context, request: NodeGetVolumeHealthRequest) {
  const { volumeId, volumePublishPath, stagingTargetPath } = request;
  checkPresent(volumeId, "volume_id");
  const record = context.staged.get(knownAs(volumeId));
  const isStagedAt = async ({ stagingPath }: NodeRecord) =>
    (await samePlace(context, [stagingPath], toPlace(stagingTargetPath))) !== undefined;
  const isPublishedAt = async (staged: NodeRecord) =>
    (await targetAt(context, staged, toPlace(volumePublishPath))) !== undefined;
  const here =
    record !== undefined &&
    (stagingTargetPath === "" || (await isStagedAt(record))) &&
    (volumePublishPath === "" || (await isPublishedAt(record)));
  if (!here) throw notFound("the volume is not at these paths of this node");
  return toVolumeHealth(volumeId, await nodeHealth(context, record));
}

async function storageHealth(context: Context) {
  try {
    const message = await poolProblem(context);
    if (message === undefined) return [];
    return [{ status: StorageHealthErrorType.STORAGE_DEGRADED, reason: "PoolNearlyFull", message }];
  } catch {
    const message = "the state directory cannot be looked at";
    return [{ status: StorageHealthErrorType.STORAGE_UNREACHABLE, reason: "PoolUnreachable", message }];
  }
}

function toVolumeHealth(volumeId: string, { problem, message }: Health) {
  const healthStatuses: { status: VolumeHealthErrorType; reason: string; message: string }[] =
    problem === undefined ? [] : [{ ...problem, message }];
  return { volumeId, healthStatuses };
}
