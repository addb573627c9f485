/** What stands between an object and the next step, besides what API server and driver say. */
export type StorageErrorCode =
  /** A StorageClass or VolumeSnapshotClass says something that cannot be followed. */
  | "BadClass"
  | "SecretUnavailable"
  /** The snapshot or claim a volume is to be made of. */
  | "SourceNotReady"
  | "SourceMissing"
  | "BadSource"
  /** The node chosen for a claim says nothing about the driver's topology. */
  | "NodeUnknown"
  /** The driver lacks the call, or answered with something else than was asked for. */
  | "DriverUnfit";

/** The one error of this room. Its message goes into events that people read, so it stands alone, without its code. */
export class StorageError extends Error {
  override readonly name = "StorageError";
  readonly code: StorageErrorCode;

  constructor(code: StorageErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
