import type { Host } from "../host.ts";
import type { StatsRequest, VolumeStats } from "../plugin.ts";

/** What a driver says about a volume beside its numbers. */
export interface VolumeCondition {
  readonly abnormal: boolean;
  readonly message: string;
}

export interface ConditionedStats extends VolumeStats {
  /** Undefined where nobody asked, or the driver does not say. */
  readonly condition?: VolumeCondition;
}

/** Of a filesystem that the volume has to itself. */
export async function filesystemStats(host: Host, { volumePath }: StatsRequest): Promise<VolumeStats> {
  const { capacityBytes, availableBytes, usedBytes, inodes, inodesFree, inodesUsed } =
    await host.files.usage(volumePath);
  return { capacityBytes, availableBytes, usedBytes, inodes, inodesFree, inodesUsed };
}

/** Of a directory that shares its filesystem: what lies below it is added up, the room is the filesystem's. */
export async function diskUsageStats(host: Host, { volumePath, signal }: StatsRequest): Promise<VolumeStats> {
  const { capacityBytes, availableBytes, inodes, inodesFree } = await host.files.usage(volumePath);
  const { usedBytes, inodesUsed } = await host.files.diskUsage(volumePath, signal);
  return { capacityBytes, availableBytes, usedBytes, inodes, inodesFree, inodesUsed };
}

/** Of a device: its size is all that is known. */
export async function deviceStats(host: Host, { volumePath }: StatsRequest): Promise<VolumeStats> {
  return { capacityBytes: await host.devices.sizeBytes(volumePath) };
}
