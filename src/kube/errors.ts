/** What the API server calls a failure (`Status.reason`), kept word for word. */
export const SERVER_CODES = [
  "BadRequest",
  "Unauthorized",
  "Forbidden",
  "NotFound",
  "MethodNotAllowed",
  "NotAcceptable",
  "AlreadyExists",
  "Conflict",
  "Expired",
  "RequestEntityTooLarge",
  "UnsupportedMediaType",
  "Invalid",
  "TooManyRequests",
  "InternalError",
  "ServiceUnavailable",
  "ServerTimeout",
  "Timeout",
] as const;

/** What goes wrong on our side of the wire. */
export const CLIENT_CODES = [
  /** No connection: the request never left. */
  "Unreachable",
  /** The connection broke after the request left: it may or may not have been carried out. */
  "ConnectionLost",
  /** Our own deadline passed, with the same doubt. */
  "DeadlineExceeded",
  /** An answer that is not what the API promises. */
  "BadResponse",
  /** A kubeconfig, a flag or a credential plugin that cannot be used; the message names file and field. */
  "BadConfig",
  /** A value given to this library that it cannot accept; the message names the field. */
  "BadInput",
] as const;

export type KubeErrorCode = (typeof SERVER_CODES)[number] | (typeof CLIENT_CODES)[number];

/** `Status.details`, as far as we read it. */
export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly retryAfterSeconds?: number;
  readonly causes?: readonly {
    readonly reason?: string;
    readonly message?: string;
    readonly field?: string;
  }[];
}

export interface KubeErrorOptions extends ErrorOptions {
  /** The HTTP status, where there was an answer. */
  readonly status?: number | undefined;
  readonly details?: StatusDetails | undefined;
  /** How long the server asks us to wait, from `Retry-After` or `details.retryAfterSeconds`. */
  readonly retryAfterMs?: number | undefined;
}

/** The one error of this room. Branch on `code`, never on text. */
export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly code: KubeErrorCode;
  /** The message without the code in front: for those who pass it on under a code of their own. */
  readonly detail: string;
  readonly status: number | undefined;
  readonly details: StatusDetails | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: KubeErrorCode, message: string, options: KubeErrorOptions = {}) {
    super(`${code}: ${message}`, options);
    this.code = code;
    this.detail = message;
    this.status = options.status;
    this.details = options.details;
    this.retryAfterMs = options.retryAfterMs;
  }

  /**
   * Whether the server may have carried the request out, or may yet, although we got no answer or a failure: behind
   * a 500 or 504 its database may have been slow, not unwilling. With `Retry-After` it turned the request away. A caller
   * that repeats such a write must be ready to find its own work done.
   */
  get outcomeUnknown(): boolean {
    if (this.code === "ConnectionLost" || this.code === "DeadlineExceeded" || this.code === "BadResponse")
      return true;
    return this.status !== undefined && this.status >= 500 && this.retryAfterMs === undefined;
  }
}

export function isKubeError(error: unknown, ...codes: KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code));
}

/** The code for an HTTP status whose body gave no reason we know. */
export function codeForStatus(status: number): KubeErrorCode {
  switch (status) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 406:
      return "NotAcceptable";
    case 409:
      return "Conflict";
    case 410:
      return "Expired";
    case 413:
      return "RequestEntityTooLarge";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 502:
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return status >= 500 ? "InternalError" : "BadResponse";
  }
}

/** A `Status` object from an answer or from an ERROR event in a watch, as an error. `what` says what was attempted. */
export function errorFromStatus(
  what: string,
  body: unknown,
  { status, retryAfterMs }: { status: number; retryAfterMs?: number | undefined },
): KubeError {
  const { reason, message, details } = (typeof body === "object" && body !== null ? body : {}) as {
    reason?: unknown;
    message?: unknown;
    details?: StatusDetails;
  };
  // "Gone" is the reason of a 410 in servers before 1.17 and in some proxies; it means the same.
  const known = SERVER_CODES.find((code) => code === (reason === "Gone" ? "Expired" : reason));
  const seconds = details?.retryAfterSeconds;
  return new KubeError(
    known ?? codeForStatus(status),
    `${what}: ${typeof message === "string" && message !== "" ? message : `HTTP ${status}`}`,
    { status, details, retryAfterMs: retryAfterMs ?? (seconds === undefined ? undefined : seconds * 1000) },
  );
}
