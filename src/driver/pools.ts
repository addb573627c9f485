import { CsiError } from "../csi/errors.ts";
import { invalid } from "./errors.ts";
import type { Settings } from "./options.ts";
import type { SnapshotRecord, Table, VolumeRecord } from "./records.ts";

/** Simulated pools (`--capacity kind=quantity`): what is promised counts, not what is written. */
export interface Pools {
  /** Free bytes of a kind, never negative; undefined for a kind that does not exist. */
  freeBytes(kind: string): bigint | undefined;
  readonly enabled: boolean;
  /**
   * The kind that will hold this, with the room reserved in the same step. The caller gives the reservation back once
   * the record that replaces it is written, or the call has failed.
   */
  reserve(kind: string, sizeBytes: bigint): { readonly kind: string; release(): void };
}

export function createPools(
  { capacity }: Pick<Settings, "capacity">,
  {
    volumes,
    snapshots,
  }: { readonly volumes: Table<VolumeRecord>; readonly snapshots: Table<SnapshotRecord> },
): Pools {
  const reserved = new Set<{ readonly kind: string; readonly sizeBytes: bigint }>();

  function freeBytes(kind: string): bigint | undefined {
    const total = capacity.get(kind);
    if (total === undefined) return undefined;
    const held = [...volumes.all(), ...snapshots.all(), ...reserved].filter((one) => one.kind === kind);
    const free = held.reduce((left, { sizeBytes }) => left - sizeBytes, total);
    return free > 0n ? free : 0n;
  }

  function choose(kind: string, sizeBytes: bigint): string {
    if (capacity.size === 0) {
      if (kind !== "") throw invalid("parameter kind: this driver has no pools (--capacity)");
      return "";
    }
    if (kind !== "" && !capacity.has(kind)) throw invalid("parameter kind names no pool of this driver");
    const candidates = kind === "" ? [...capacity.keys()] : [kind];
    const chosen = candidates.find((one) => (freeBytes(one) ?? 0n) >= sizeBytes);
    if (chosen === undefined) {
      throw new CsiError("RESOURCE_EXHAUSTED", `no pool has ${sizeBytes} bytes left`);
    }
    return chosen;
  }

  return {
    freeBytes,
    enabled: capacity.size > 0,
    reserve(kind, sizeBytes) {
      const reservation = { kind: choose(kind, sizeBytes), sizeBytes };
      if (reservation.kind !== "") reserved.add(reservation);
      return { kind: reservation.kind, release: () => void reserved.delete(reservation) };
    },
  };
}
