/**
 * Why a volume of a pod is not where it should be, said once by whoever decides. Metrics, events, `/debug/volumes` and
 * `mooring why` show this value; nobody works it out again.
 */
export interface WaitingFor {
  readonly reason: WaitingReason;
  /** What has to change for it to go on. */
  readonly object: WaitingObject;
  /** When this wait began, in the clock's `now()`. */
  readonly sinceMs: number;
  /** When it is tried again even if nothing happens. */
  readonly untilMs?: number;
  /** The pod has been told of this wait. */
  readonly told?: boolean;
  /** One sentence for people; names the object and what would help. */
  readonly message: string;
}

export interface WaitingObject {
  readonly kind: "Node" | "Pod" | "CSIDriver" | "Volume" | "VolumeAttachment" | "Process";
  readonly name: string;
  readonly namespace?: string;
}

/** The closed set; docs/reference/waiting.md explains each. */
export const WAITING_REASONS = [
  /** CSIDriver objects have not been read yet, so nobody knows whether it needs attaching. */
  "driver-unknown",
  /** `volumesInUse` does not name it yet, as far as the server has confirmed. */
  "in-use-not-reported",
  /** The node's `volumesAttached` does not name it yet. */
  "not-attached",
  /** ReadWriteOncePod, and another pod has it or may have it. */
  "held-by-other-pod",
  /** It is, or may be, mounted with another SELinux label than this pod's. */
  "selinux-mismatch",
  /** A step of this volume is under way. */
  "step-running",
  /** A call got no answer, and its driver may be at it still. */
  "call-unanswered",
  /** The last attempt failed; the message says how. */
  "backoff",
  /** A live pod has it, but its claim or PersistentVolume was replaced or is gone; or another of its name is in its place. */
  "volume-replaced",
  /** A live pod may be using it: one of its volumes cannot be followed right now. */
  "pod-unresolved",
  /** Found after a start without its name; the pod that wants a volume of that name takes it over. */
  "adopting",
  /** Found after a start and set up once more to be sure of it, a few at a time. */
  "taking-turns",
  /** The kernel is being asked whether a process still has it. */
  "looking-for-holders",
  /** A process has it, or nobody could tell; it stays, here and in `volumesInUse`. */
  "held-by-process",
  /** Nothing is taken down before pods and the node's status were read after a start. */
  "not-synced",
] as const;

export type WaitingReason = (typeof WAITING_REASONS)[number];
