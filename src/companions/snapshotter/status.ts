import { formatTime } from "../../kube/time.ts";
import { jsonEqual } from "../../kube/patch/json.ts";
import type { VolumeSnapshot, VolumeSnapshotContent } from "../kinds.ts";
import { toQuantity } from "../sizes.ts";

/** The status a snapshot should have, from its content; undefined if it has it. */
export function snapshotStatus(
  { status = {} }: VolumeSnapshot,
  { metadata, status: made = {} }: VolumeSnapshotContent,
): object | undefined {
  const wanted = {
    boundVolumeSnapshotContentName: metadata.name,
    readyToUse: made.readyToUse ?? false,
    creationTime: made.creationTime === undefined ? undefined : toTime(made.creationTime),
    restoreSize: made.restoreSize === undefined ? undefined : toQuantity(BigInt(made.restoreSize)),
    error: made.error,
  };
  const missing = Object.entries(wanted).filter(([field, value]) => {
    const has = (status as Record<string, unknown>)[field];
    return value === undefined ? has !== undefined && field === "error" : !jsonEqual(value, has);
  });
  if (missing.length === 0) return undefined;
  return Object.fromEntries(missing.map(([field, value]) => [field, value ?? null]));
}

const NANOS_PER_MS = 1_000_000;

function toTime(nanos: number): string {
  return formatTime(new Date(Math.floor(nanos / NANOS_PER_MS)));
}
