export type ProcessErrorCode =
  /** Another process works on this data directory. */
  | "DataDirInUse"
  /** The data directory cannot be made, read or written. */
  | "BadDataDir"
  /** A file named by a flag cannot be used. */
  | "BadFile"
  /** A kubelet works on this root directory, or on this machine. */
  | "KubeletHere"
  /** Nothing can listen there. */
  | "BadAddress"
  /** A process started but does not work. */
  | "NotWorking";

/** The one error of this room: a start that cannot go on, in words for the person who started it. */
export class ProcessError extends Error {
  override readonly name = "ProcessError";
  readonly code: ProcessErrorCode;

  constructor(code: ProcessErrorCode, message: string, options?: ErrorOptions) {
    super(`${code}: ${message}`, options);
    this.code = code;
  }

  /** The message without its code, as a command prints it. */
  get explanation(): string {
    return this.message.slice(this.code.length + 2);
  }
}
