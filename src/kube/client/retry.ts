import { backoffMs } from "../../base/backoff.ts";
import { isKubeError, type KubeError } from "../errors.ts";

/** How a request behaves when it is sent twice. */
export type Repeatable =
  /** A read, or a write whose second copy changes nothing. */
  | "always"
  /** Only while the first copy certainly was not carried out. */
  | "if-not-carried-out";

const FIRST_MS = 100;
const MAX_MS = 5_000;

/**
 * How long to wait before sending again, or undefined if it must not be (pure).
 *
 * A server that answers 429, or 5xx with `Retry-After`, has not carried the request out: it sets that
 * header only when it turned the request away. A refused connection never delivered it. Everything else
 * leaves doubt, and doubt is settled by whoever knows what the write meant.
 */
export function retryDelayMs(error: unknown, failures: number, repeatable: Repeatable): number | undefined {
  if (!isKubeError(error)) return undefined;
  if (!(notCarriedOut(error) || (repeatable === "always" && error.outcomeUnknown))) return undefined;
  return Math.max(error.retryAfterMs ?? 0, backoffMs(failures, { initialMs: FIRST_MS, maxMs: MAX_MS }));
}

function notCarriedOut(error: KubeError): boolean {
  if (error.code === "Unreachable" || error.code === "TooManyRequests") return true;
  return error.status !== undefined && error.status >= 500 && error.retryAfterMs !== undefined;
}
