/**
 * Why nothing happens right now, said once by whoever decides. Metrics, events, `/debug/volumes`, `mooring why`
 * and the dashboard all show this value; nobody works it out again.
 */
export interface WaitingFor {
  readonly reason: WaitingReason;
  /** What has to change for it to go on. */
  readonly object: WaitingObject;
  /** When this wait began, in the clock's `now()`. */
  readonly sinceMs: number;
  /** When it is looked at again even if nothing happens. */
  readonly untilMs?: number;
  /** One sentence for people; names the object and what would help. */
  readonly message: string;
}

export interface WaitingObject {
  readonly kind:
    | "Node"
    | "Pod"
    | "PersistentVolumeClaim"
    | "PersistentVolume"
    | "VolumeAttachment"
    | "CSIDriver"
    | "Volume";
  readonly name: string;
  readonly namespace?: string;
}

/** The closed set; docs/reference/waiting.md explains each. */
export const WAITING_REASONS = [
  /** A pod's volume cannot be followed to a real one yet. */
  "claim-missing",
  "claim-unbound",
  "claim-not-owned",
  "volume-missing",
  "volume-not-bound-back",
  "untranslatable",
  /** The pod's node is not there, or leaves attaching to its kubelet. */
  "node-missing",
  "node-not-managed",
  /** Another node holds, or may hold, a volume that only one may have. */
  "held-by-other-node",
  /** Our request to the API server is under way. */
  "api-request",
  /** The driver's attacher has not answered yet. */
  "driver-attaching",
  "driver-detaching",
  /** The last attempt failed; the message says how. */
  "backoff",
  /** The node's `volumesAttached` does not say yet what it should. */
  "node-status",
  /** The node says, or may say, that it uses the volume. */
  "still-mounted",
  /** Frozen: nothing will be done until somebody looks. */
  "foreign-attachment",
  "unknown-plugin",
  "unresolved-pod",
  "attachment-mismatch",
  "stale-cache",
  "policy-never",
] as const;

export type WaitingReason = (typeof WAITING_REASONS)[number];

const FROZEN: ReadonlySet<WaitingReason> = new Set([
  "foreign-attachment",
  "unknown-plugin",
  "unresolved-pod",
  "attachment-mismatch",
  "stale-cache",
]);

/** A frozen volume is never detached, however long it takes. */
export function isFrozen({ reason }: WaitingFor): boolean {
  return FROZEN.has(reason);
}
