/** What this half of the room says: why nothing happens to an object right now, and what it tells in events. */

export const WAITING_REASONS = [
  // Binding.
  "volume-missing",
  "volume-taken",
  "volume-mismatch",
  "no-volume",
  "class-missing",
  "first-consumer",
  "provisioner",
  "lost",
  // Calls to the driver.
  "backoff",
  "still-attached",
  // Growing.
  "class-forbids",
  "node-resize",
  // Snapshots.
  "content-missing",
  "content-mismatch",
  "claim-unbound",
  "driver-cutting",
  "in-use",
] as const;

export interface Waiting {
  readonly reason: (typeof WAITING_REASONS)[number];
  readonly message: string;
}

/** Of upstream, word for word: people and tools filter by them. */
export const EVENT_REASONS = [
  "ClaimLost",
  "ClaimMisbound",
  "CreatingSnapshot",
  "ExternalProvisioning",
  "FailedBinding",
  "FileSystemResizeRequired",
  "GetSnapshotClassFailed",
  "Provisioning",
  "ProvisioningFailed",
  "ProvisioningSucceeded",
  "Resizing",
  "SetDefaultSnapshotClassFailed",
  "SnapshotContentCreationFailed",
  "SnapshotContentMisbound",
  "SnapshotContentMismatch",
  "SnapshotContentMissing",
  "SnapshotCreationFailed",
  "SnapshotDeleteError",
  "SnapshotReady",
  "VolumeFailedDelete",
  "VolumeFailedRecycle",
  "VolumeMismatch",
  "VolumeResizeFailed",
  "VolumeResizeSuccessful",
  "WaitForFirstConsumer",
] as const;

export type EventReason = (typeof EVENT_REASONS)[number];

/** An event, before it is known about what. */
export interface Told {
  readonly type: "Normal" | "Warning";
  readonly reason: EventReason;
  readonly message: string;
}
