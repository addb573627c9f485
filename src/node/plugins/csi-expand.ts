import { Node, VolumeUsage_Unit as Unit, type VolumeUsage } from "../../csi/gen/csi_pb.ts";
import { specName } from "../../volumes/spec.ts";
import { VolumeError } from "../errors.ts";
import type { ExpandRequest, StatsRequest, VolumeStats } from "../plugin.ts";
import { persistent } from "./csi-device.ts";
import { fromDriver, fromExpansion } from "./csi-errors.ts";
import { probe, secretsOf, type CsiContext } from "./csi-lookups.ts";
import { expandRequest } from "./csi-requests.ts";
import { csiVolumeOf, handleOf } from "./csi-source.ts";

/** NodeExpandVolume. What the driver says the size is now is not used: the caller knows what it asked for. */
export async function expand(context: CsiContext, request: ExpandRequest): Promise<void> {
  const { volumePath, stagingPath, newSizeBytes, signal } = request;
  const volume = persistent(request.spec);
  const what = `expanding ${volume.handle}`;
  if (volumePath === "") throw new VolumeError("final", `${what}: no volume path is known`);
  if (!Number.isSafeInteger(newSizeBytes) || newSizeBytes < 0) {
    throw new VolumeError("final", `${what}: ${newSizeBytes} is no size`);
  }
  const { driver, can } = await probe(context, volume.driver, signal);
  if (!can.expand) throw notSupported(`driver ${volume.driver} does not expand volumes on the node`);
  const secrets = await secretsOf(context, volume.expandSecret, {
    field: "NodeExpandSecretRef",
    podNamespace: "",
    signal,
  });
  const message = expandRequest({ volume, volumePath, stagingPath, newSizeBytes, secrets, traits: can });
  try {
    await driver.call(Node.method.nodeExpandVolume, message, { signal, migrated: volume.migrated });
  } catch (error) {
    throw fromExpansion(error);
  }
}

/** A driver that hangs must not hold up the page that shows all volumes. */
const STATS_MS = 30_000;

export async function stats(
  context: CsiContext,
  { spec, podUid, volumePath, signal }: StatsRequest,
): Promise<VolumeStats> {
  const volume = csiVolumeOf(spec);
  if (volume === undefined)
    throw new VolumeError("final", `volume ${specName(spec)} names no CSI driver and handle`);
  const { driver, can } = await probe(context, volume.driver, signal);
  if (!can.stats) throw notSupported(`driver ${volume.driver} does not support volume stats`);
  const volumeId = handleOf(volume, { podUid, specName: specName(spec) });
  try {
    const { usage } = await driver.call(
      Node.method.nodeGetVolumeStats,
      { volumeId, volumePath },
      { signal, timeoutMs: STATS_MS },
    );
    if (usage.length === 0)
      throw new VolumeError("final", `driver ${volume.driver} gave no usage of ${volumeId}`);
    return usage.reduce<VolumeStats>((known, part) => ({ ...known, ...statsOf(part) }), {});
  } catch (error) {
    throw fromDriver(error);
  }
}

function statsOf({ unit, available, total, used }: VolumeUsage): VolumeStats {
  if (unit === Unit.BYTES) {
    return { availableBytes: Number(available), capacityBytes: Number(total), usedBytes: Number(used) };
  }
  if (unit === Unit.INODES)
    return { inodesFree: Number(available), inodes: Number(total), inodesUsed: Number(used) };
  return {};
}

function notSupported(message: string): VolumeError {
  return new VolumeError("final", message, { kind: "not-supported" });
}
