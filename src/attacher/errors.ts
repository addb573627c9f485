export type AttacherErrorCode =
  /** The VolumeAttachment names no volume, or two, or one that no CSI driver serves. */
  | "BadSource"
  /** The PersistentVolume does not exist (any more). */
  | "VolumeMissing"
  | "VolumeDeleting"
  /** The PersistentVolume has another handle than the attachment was made or published for. */
  | "VolumeReplaced"
  /** Another attachment of the same volume on the same node is being detached. */
  | "BeingDetached"
  /** Its access modes cannot be had together, or not at all. */
  | "BadAccessModes"
  /** The node has not registered the driver. */
  | "NodeUnknown"
  | "SecretUnavailable"
  /** A volume for one node is, or may be, attached to another. */
  | "HeldElsewhere"
  /** The API server does not take what the driver answered to a publish, and will not take it the next time. */
  | "ContextRefused"
  /** The driver introduced itself wrongly, or not in time: nothing can be done with it. */
  | "DriverUnusable";

/** What something waits for. */
export interface WaitingObject {
  readonly kind: "VolumeAttachment" | "PersistentVolume" | "CSINode" | "Secret" | "CSIDriver";
  readonly name: string;
  readonly namespace?: string;
}

export interface AttacherErrorOptions extends ErrorOptions {
  /** What has to change, where the attachment alone does not tell. */
  readonly subject?: WaitingObject;
}

/**
 * The one error of this room. Its message goes into statuses that people and tools read, so it stands alone, without
 * its code in front.
 */
export class AttacherError extends Error {
  override readonly name = "AttacherError";
  readonly code: AttacherErrorCode;
  readonly subject: WaitingObject | undefined;

  constructor(code: AttacherErrorCode, message: string, options: AttacherErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.subject = options.subject;
  }
}
