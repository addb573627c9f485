import {
  Node,
  VolumeHealthErrorType as HealthType,
  VolumeUsage_Unit as Unit,
  type NodeGetVolumeStatsResponse,
  type VolumeUsage,
} from "../../csi/gen/csi_pb.ts";
import { specName } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { StatsRequest, VolumeStats } from "../plugin.ts";
import { stagingPathOf } from "./csi-device.ts";
import type { CsiDriverClient } from "./csi-drivers.ts";
import { fromDriver } from "./csi-errors.ts";
import { probe, type Capable, type CsiContext } from "./csi-lookups.ts";
import { csiVolumeOf, handleOf, type CsiVolume } from "./csi-source.ts";
import type { ConditionedStats, VolumeCondition } from "./stats.ts";

/** A driver that hangs must not hold up whoever asks about all volumes. */
const STATS_MS = 30_000;

interface Asked {
  readonly driver: CsiDriverClient;
  readonly can: Capable;
  readonly volume: CsiVolume;
  readonly volumeId: string;
}

/** NodeGetVolumeStats, and with `health` what the driver says about the volume's condition. */
export async function stats(
  context: CsiContext,
  request: StatsRequest,
  { health }: { readonly health: boolean },
): Promise<ConditionedStats> {
  const { spec, podUid, signal } = request;
  const volume = csiVolumeOf(spec);
  if (volume === undefined)
    throw new VolumeError("final", `volume ${specName(spec)} names no CSI driver and handle`);
  const { driver, can } = await probe(context, volume.driver, signal);
  const volumeId = handleOf(volume, { podUid, specName: specName(spec) });
  const asked = { driver, can, volume, volumeId };
  if (!can.stats && !(health && can.health))
    throw new VolumeError("final", `driver ${volume.driver} does not support volume stats`, {
      kind: "not-supported",
    });
  try {
    const { usage, volumeCondition } = can.stats ? await askStats(asked, request) : NOTHING;
    const known = usage.reduce<VolumeStats>((sum, part) => ({ ...sum, ...statsOf(part) }), {});
    const reported = can.condition ? conditionOf(volumeCondition) : undefined;
    const condition = health ? await askHealth(context, asked, { request, reported }) : undefined;
    return { ...known, ...(condition && { condition }) };
  } catch (error) {
    throw fromDriver(error);
  }
}

const NOTHING: Pick<NodeGetVolumeStatsResponse, "usage" | "volumeCondition"> = { usage: [] };

async function askStats({ driver, volume, volumeId }: Asked, { volumePath, signal }: StatsRequest) {
  const answer = await driver.call(
    Node.method.nodeGetVolumeStats,
    { volumeId, volumePath },
    { signal, timeoutMs: STATS_MS },
  );
  if (answer.usage.length === 0)
    throw new VolumeError("final", `driver ${volume.driver} gave no usage of ${volumeId}`);
  return answer;
}

/** CSI 1.13 asks for it by a call of its own; until 1.12 it came with the stats. */
async function askHealth(
  { paths }: CsiContext,
  { driver, can, volume, volumeId }: Asked,
  { request, reported }: { readonly request: StatsRequest; readonly reported: VolumeCondition | undefined },
): Promise<VolumeCondition | undefined> {
  if (!can.health || volume.kind !== "persistent") return reported;
  const stagingTargetPath = can.stage && !volume.block ? stagingPathOf(paths, volume) : "";
  const { volumeHealth } = await driver.call(
    Node.method.nodeGetVolumeHealth,
    { volumeId, volumePublishPath: request.volumePath, stagingTargetPath },
    { signal: request.signal, timeoutMs: STATS_MS },
  );
  // Kinds of trouble that are younger than this code say nothing that could be told.
  const adverse = (volumeHealth?.healthStatuses ?? []).filter(({ status }) => WORDS.has(status));
  const texts = adverse.map(({ status, reason, message }) =>
    [WORDS.get(status), reason, message].filter((part) => part !== "").join(": "),
  );
  return { abnormal: adverse.length > 0, message: texts.join("; ") };
}

const WORDS: ReadonlyMap<HealthType, string> = new Map([
  [HealthType.DEGRADED, "Degraded"],
  [HealthType.INACCESSIBLE, "Inaccessible"],
  [HealthType.DATA_LOSS, "DataLoss"],
]);

function conditionOf(
  condition: { readonly abnormal: boolean; readonly message: string } | undefined,
): VolumeCondition | undefined {
  return condition && { abnormal: condition.abnormal, message: condition.message };
}

function statsOf({ unit, available, total, used }: VolumeUsage): VolumeStats {
  if (unit === Unit.BYTES)
    return { availableBytes: Number(available), capacityBytes: Number(total), usedBytes: Number(used) };
  if (unit === Unit.INODES)
    return { inodesFree: Number(available), inodes: Number(total), inodesUsed: Number(used) };
  return {};
}
