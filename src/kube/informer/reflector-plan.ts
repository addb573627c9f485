import { backoffMs, jittered } from "../../base/backoff.ts";
import type { Random } from "../../base/random.ts";
import { compareVersions } from "../object.ts";
import { isKubeError, type KubeErrorCode } from "../errors.ts";

/**
 * What a reflector does next, as a function of what just happened (pure). The promise behind it: whatever
 * the server does, there is a next step, it is either "resume where we were" or "take the whole state
 * again", and it is never "give up".
 */
export type NextStep =
  /** Watch on from the last position: every change since then arrives. */
  | { readonly kind: "resume"; readonly delayMs: number; readonly why: Why }
  /** Take the complete state again and tell handlers the difference. */
  | { readonly kind: "sync"; readonly delayMs: number; readonly why: Why };

/** Reasons as metrics and logs name them. */
export type Why = "started" | "ended" | "silent" | "expired" | "refused" | "garbled" | KubeErrorCode;

export type WatchResult =
  /** The server closed the stream in good order. */
  | { readonly kind: "ended" }
  /** Nothing arrived for longer than a server may be silent. */
  | { readonly kind: "silent" }
  | { readonly kind: "failed"; readonly error: unknown };

export interface Attempt {
  readonly result: WatchResult;
  /** Tries in a row that came to nothing, this one included; 0 if this one was a healthy watch. */
  readonly failures: number;
}

/** First retry at once enough not to be noticed; the last slow enough for 5,000 clients of a server that returns. */
const BACKOFF = { initialMs: 200, maxMs: 15_000 };

/** After so many attempts in a row at one position the position itself is suspect. */
const ATTEMPTS_AT_ONE_POSITION = 5;

export function planAfterWatch({ result, failures }: Attempt, random: Random): NextStep {
  // A stream that brought something and ended is how a watch is meant to live: 5 to 10 minutes, then the next.
  const delayMs = failures === 0 ? 0 : jittered(backoffMs(failures, BACKOFF), 1, random);
  switch (result.kind) {
    case "ended":
      return { kind: "resume", delayMs, why: "ended" };
    case "silent":
      // The wait already was the delay.
      return { kind: "resume", delayMs: failures <= 1 ? 0 : delayMs, why: "silent" };
    case "failed":
      return planAfterError(result.error, { failures, delayMs });
  }
}

function planAfterError(
  error: unknown,
  { failures, delayMs }: { failures: number; delayMs: number },
): NextStep {
  const code = isKubeError(error) ? error.code : "BadResponse";
  if (isPositionLost(error)) {
    // At once the first time: handlers are blind until the state is back.
    return { kind: "sync", delayMs: failures <= 1 ? 0 : delayMs, why: "expired" };
  }
  const waitMs = Math.max(delayMs, isKubeError(error) ? (error.retryAfterMs ?? 0) : 0);
  const suspect = failures >= ATTEMPTS_AT_ONE_POSITION && (code === "BadResponse" || code === "BadRequest");
  return suspect
    ? { kind: "sync", delayMs: waitMs, why: "garbled" }
    : { kind: "resume", delayMs: waitMs, why: code };
}

/** After a failed list or streaming list there is only one thing to do; the question is when. */
export function planAfterSync(error: unknown, failures: number, random: Random): NextStep {
  const retryAfterMs = isKubeError(error) ? (error.retryAfterMs ?? 0) : 0;
  const delayMs = Math.max(retryAfterMs, jittered(backoffMs(failures, BACKOFF), 1, random));
  return { kind: "sync", delayMs, why: isKubeError(error) ? error.code : "BadResponse" };
}

/** The server does not know our position: too old (compacted), or from its future (it was restored). */
export function isPositionLost(error: unknown): boolean {
  if (isKubeError(error, "Expired")) return true;
  return isKubeError(error) && isTooLargeVersion(error.details?.causes);
}

function isTooLargeVersion(causes: readonly { readonly reason?: string }[] | undefined): boolean {
  return causes?.some(({ reason }) => reason === "ResourceVersionTooLarge") ?? false;
}

/** A server that does not know `sendInitialEvents` says so with one of these; then lists have to do. */
export function refusesStreamingList(error: unknown): boolean {
  return isKubeError(error, "Invalid", "BadRequest", "MethodNotAllowed", "NotAcceptable");
}

/**
 * How many events a resumed watch repeats on purpose. A server that swapped two neighbours and was cut off
 * between them would otherwise leave one of them untold for ever. Eight repeats a reconnect cost nothing, and
 * the store drops what it already has.
 */
const RESUME_OVERLAP = 8;

/** Where to resume: the position of the event eight before the last, or the last bookmark if that is newer. */
export class ResumePosition {
  #recent: string[];

  constructor(version: string) {
    this.#recent = [version];
  }

  get version(): string {
    return this.#recent[0] ?? "";
  }

  /** The newest that was taken in. */
  get newest(): string {
    return this.#recent.at(-1) ?? "";
  }

  event(version: string): void {
    this.#recent.push(version);
    if (this.#recent.length > RESUME_OVERLAP + 1) this.#recent.shift();
  }

  /**
   * A bookmark promises that everything up to it was sent; one from the past promises nothing new. Answers
   * whether it moved us.
   */
  bookmark(version: string): boolean {
    const newest = this.#recent.at(-1) ?? "";
    const order = compareVersions(version, newest);
    if (order !== undefined && order < 0) return false;
    this.#recent = [version];
    return order !== 0;
  }
}
