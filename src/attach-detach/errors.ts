/** What can go wrong between a plan and its end. */
export type AttachDetachErrorCode =
  /** The volume has nothing that could be attached. */
  | "NotAttachable"
  /** The VolumeAttachment of an earlier attach is still on its way out. */
  | "BeingDeleted"
  /** The driver's attacher wrote an error. */
  | "DriverFailed"
  /** The driver's attacher wrote nothing in time. */
  | "TimedOut"
  /** The VolumeAttachment of that name belongs to something else. */
  | "Mismatch"
  /** The API server refused, or could not be reached. */
  | "ApiFailed"
  /** The volume was taken off the node's list, and is there again. */
  | "ListedAgain"
  /** The node may use the volume, and its attacher has begun with a VolumeAttachment that it cannot finish. */
  | "InUse"
  /** No plugin serves the volume. */
  | "NoPlugin"
  /** Another process leads. */
  | "NotLeading";

export class AttachDetachError extends Error {
  override readonly name = "AttachDetachError";
  readonly code: AttachDetachErrorCode;
  /** The message without the code in front: what events show, as upstream's do. */
  readonly detail: string;

  constructor(code: AttachDetachErrorCode, message: string, options?: ErrorOptions) {
    super(`${code}: ${message}`, options);
    this.code = code;
    this.detail = message;
  }
}

/** What people should read of any failure. */
export function detailOf(error: unknown): string {
  if (error instanceof AttachDetachError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}

/** The closed set a failure belongs to; of one from elsewhere, whose it is. */
export function errorClass(error: unknown): string {
  if (error instanceof AttachDetachError) return error.code;
  return error instanceof Error ? error.name : "unknown";
}
