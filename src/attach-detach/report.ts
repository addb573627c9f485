import type { WaitingReason } from "./waiting.ts";

/** What `/debug/volumes` answers: every volume that is wanted or attached somewhere, and why it is not settled. */
export interface VolumesReport {
  /** When it was made. */
  readonly time: string;
  /** False until caches are complete and, with leader election, while another process leads. */
  readonly active: boolean;
  readonly volumes: readonly VolumeReport[];
  /** Volumes of pods that could not be followed to a real volume. */
  readonly unresolved: readonly UnresolvedReport[];
}

export interface VolumeReport {
  readonly volume: string;
  readonly persistentVolume?: string;
  readonly node: string;
  /** Pods on that node that want it, as `namespace/name`. */
  readonly wantedBy: readonly string[];
  readonly state: "detached" | "attaching" | "attached" | "uncertain" | "detaching";
  /** In the node's `volumesAttached`, as far as the server has confirmed. */
  readonly listed: boolean;
  readonly mounted: boolean;
  readonly volumeAttachment?: string;
  /** VolumeAttachments of others that have the volume on this node, or may get it. */
  readonly foreignAttachments?: readonly string[];
  readonly waitingFor?: WaitingReport;
}

export interface UnresolvedReport {
  readonly pod: string;
  readonly volume: string;
  readonly node: string;
  readonly waitingFor: WaitingReport;
}

export interface WaitingReport {
  readonly reason: WaitingReason;
  readonly frozen: boolean;
  readonly object: { readonly kind: string; readonly name: string; readonly namespace?: string };
  readonly since: string;
  readonly until?: string;
  readonly message: string;
}

export interface ReportFilter {
  readonly volume?: string;
  readonly node?: string;
  /** `namespace/name`. */
  readonly pod?: string;
  readonly waitingOnly?: boolean;
  /** A cluster may have a million; what exceeds it is left out. */
  readonly limit?: number;
}
