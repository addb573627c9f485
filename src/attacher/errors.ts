export type AttacherErrorCode =
  /** The VolumeAttachment names no volume, or two, or one that no CSI driver serves. */
  | "BadSource"
  /** The PersistentVolume does not exist (any more). */
  | "VolumeMissing"
  | "VolumeDeleting"
  /** Its access modes cannot be had together, or not at all. */
  | "BadAccessModes"
  /** The node has not registered the driver. */
  | "NodeUnknown"
  | "SecretUnavailable"
  /** The driver introduced itself wrongly, or not in time: nothing can be done with it. */
  | "DriverUnusable";

/**
 * The one error of this room. Its message goes into statuses that people and tools read, so it stands alone, without
 * its code in front.
 */
export class AttacherError extends Error {
  override readonly name = "AttacherError";
  readonly code: AttacherErrorCode;

  constructor(code: AttacherErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
