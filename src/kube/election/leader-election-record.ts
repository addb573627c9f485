import type { Lease } from "../api/lease.ts";

/** What a Lease says about who leads, compatible with client-go's. Times are others' wall clocks: never compared with ours. */
export interface LeaseRecord {
  /** Empty: nobody leads. */
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
  readonly acquireTime: string;
  readonly renewTime: string;
  readonly leaseTransitions: number;
}

export function recordOf({ spec }: Lease): LeaseRecord {
  return {
    holderIdentity: spec?.holderIdentity ?? "",
    leaseDurationSeconds: spec?.leaseDurationSeconds ?? 0,
    acquireTime: spec?.acquireTime ?? "",
    renewTime: spec?.renewTime ?? "",
    leaseTransitions: spec?.leaseTransitions ?? 0,
  };
}

/** Whether the holder has written since. A label somebody changed is no sign of life, so the resourceVersion does not count. */
export function isSameRecord(a: LeaseRecord, b: LeaseRecord): boolean {
  return (
    a.holderIdentity === b.holderIdentity &&
    a.renewTime === b.renewTime &&
    a.acquireTime === b.acquireTime &&
    a.leaseTransitions === b.leaseTransitions &&
    a.leaseDurationSeconds === b.leaseDurationSeconds
  );
}

/** The lease with this record; whatever else it holds is kept, its resourceVersion too, which is the precondition. */
export function withRecord(
  lease: Lease,
  record: LeaseRecord,
  labels: Readonly<Record<string, string>> = {},
): Lease {
  const merged = { ...lease.metadata.labels, ...labels };
  return {
    ...lease,
    metadata: { ...lease.metadata, ...(Object.keys(merged).length > 0 && { labels: merged }) },
    spec: { ...lease.spec, ...record },
  };
}

/** Nobody's, and free at once: one second is the shortest a Lease can say. */
export function releasedLease(lease: Lease, wall: Date): Lease {
  const time = toMicroTime(wall.getTime(), 0);
  const { leaseTransitions } = recordOf(lease);
  return withRecord(lease, {
    holderIdentity: "",
    leaseDurationSeconds: 1,
    acquireTime: time,
    renewTime: time,
    leaseTransitions,
  });
}

/**
 * A MicroTime with six digits. Our clock has three; the others carry a sequence number, so that two writes
 * of one process within a millisecond differ and we can tell which of them we read back.
 */
export function toMicroTime(wallMs: number, sequence: number): string {
  const digits = String(sequence % 1_000).padStart(3, "0");
  return new Date(wallMs).toISOString().replace("Z", `${digits}Z`);
}
