/** gRPC status codes by the names of the protocol; OK is not an error and not here. */
export const CSI_CODES = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type CsiCode = keyof typeof CSI_CODES;

/**
 * What a caller may conclude.
 * - `uncertain`: this call, or an earlier try of it, may still be running or may have happened. Keep the books, try
 *   again, and undo explicitly what is no longer wanted.
 * - `retryable`: certainly not running, and the same call may succeed once something else has changed.
 * - `final`: certainly not running, and the same call will fail the same way.
 *
 * Kubernetes knows only `uncertain` and the rest; the cut between the other two is advice for back-off and messages,
 * never a reason to skip an undo.
 */
export type ErrorClass = "final" | "uncertain" | "retryable";

const CLASSES: Readonly<Record<CsiCode, ErrorClass>> = {
  CANCELLED: "uncertain",
  DEADLINE_EXCEEDED: "uncertain",
  RESOURCE_EXHAUSTED: "uncertain",
  ABORTED: "uncertain",
  UNAVAILABLE: "uncertain",
  UNKNOWN: "retryable",
  NOT_FOUND: "retryable",
  PERMISSION_DENIED: "retryable",
  FAILED_PRECONDITION: "retryable",
  INTERNAL: "retryable",
  UNAUTHENTICATED: "retryable",
  INVALID_ARGUMENT: "final",
  ALREADY_EXISTS: "final",
  OUT_OF_RANGE: "final",
  UNIMPLEMENTED: "final",
  DATA_LOSS: "final",
};

export interface CsiErrorOptions extends ErrorOptions {
  /** It went wrong on our side of the wire, after the request left: no code of the driver says how it ended. */
  readonly unanswered?: boolean | undefined;
}

/**
 * The one error of this room. A handler throws it to answer with a code; a caller catches it. The message may reach
 * end users (statuses, events): no secret, no stack, no environment belongs in it.
 */
export class CsiError extends Error {
  override readonly name = "CsiError";
  readonly code: CsiCode;
  /** The message without the code in front: what crosses the wire. */
  readonly detail: string;
  readonly unanswered: boolean;

  constructor(code: CsiCode, message: string, options: CsiErrorOptions = {}) {
    super(`${code}: ${message}`, options);
    this.code = code;
    this.detail = message;
    this.unanswered = options.unanswered ?? false;
  }

  get number(): number {
    return CSI_CODES[this.code];
  }

  get class(): ErrorClass {
    return this.unanswered ? "uncertain" : CLASSES[this.code];
  }
}

export function isCsiError(error: unknown, ...codes: CsiCode[]): error is CsiError {
  return error instanceof CsiError && (codes.length === 0 || codes.includes(error.code));
}

/** The class of whatever was thrown: what is not a status of the protocol says nothing about the outcome. */
export function classOf(error: unknown): ErrorClass {
  return error instanceof CsiError ? error.class : "uncertain";
}

const NAMES = new Map(Object.entries(CSI_CODES).map(([name, number]) => [number as number, name as CsiCode]));

/** The name of a code on the wire; numbers nobody has defined are UNKNOWN, as the gRPC specification wants. */
export function codeOfNumber(number: number): CsiCode {
  return NAMES.get(number) ?? "UNKNOWN";
}
