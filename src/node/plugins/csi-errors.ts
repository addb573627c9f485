import { CsiError, isCsiError, type CsiCode } from "../../csi/errors.ts";
import { VolumeError, type Blocker, type FailureKind } from "../errors.ts";

/** The driver did not answer: the deadline passed, or the call was cut off here. It may be at it still. */
export class UnansweredCall extends CsiError {
  /** Resolves when the connection it was sent on is lost, and with it the process that was at it. */
  readonly over: Promise<void>;
  /** In the clock's `now()`. */
  readonly sinceMs: number;

  constructor(error: CsiError, { over, sinceMs }: { over: Promise<void>; sinceMs: number }) {
    super(error.code, error.detail, { cause: error.cause, unanswered: true });
    this.over = over;
    this.sinceMs = sinceMs;
  }
}

/** What a driver answered, as what it means for the volume. The class is a value from here on (FIX 15). */
export function fromDriver(error: unknown, { kind }: { readonly kind?: FailureKind } = {}): VolumeError {
  if (error instanceof VolumeError) return error;
  if (!(error instanceof CsiError)) return new VolumeError("uncertain", messageOf(error), { cause: error });
  const outcome = error.class === "uncertain" ? "uncertain" : "final";
  const text = `rpc error: code = ${grpcCodeName(error.code)} desc = ${error.detail}`;
  const late = error instanceof UnansweredCall ? { over: error.over, sinceMs: error.sinceMs } : undefined;
  return new VolumeError(outcome, text, { cause: error, late, ...(kind === undefined ? {} : { kind }) });
}

/** Expansion knows three more answers (14.11). */
export function fromExpansion(error: unknown): VolumeError {
  if (isCsiError(error, "FAILED_PRECONDITION")) return fromDriver(error, { kind: "in-use" });
  if (isCsiError(error, "INVALID_ARGUMENT", "OUT_OF_RANGE", "NOT_FOUND")) {
    return fromDriver(error, { kind: "infeasible" });
  }
  return fromDriver(error);
}

/** Nothing was attempted; it is tried again as soon as one of `blockedBy` changes. */
export function transient(
  message: string,
  options: { cause?: unknown; blockedBy?: readonly Blocker[]; kind?: FailureKind } = {},
): VolumeError {
  return new VolumeError("transient", message, options);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Go's spelling, which event texts and metric labels have: `DeadlineExceeded`, and one l in `Canceled`. */
export function grpcCodeName(code: CsiCode): string {
  if (code === "CANCELLED") return "Canceled";
  return code.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
