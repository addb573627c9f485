import { assert } from "./assert.ts";
import type { Random } from "./random.ts";

export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor?: number;
}

/** Delay before the next try after `failures` in a row (1 = the first failure): initial x factor^(n-1), capped. */
export function backoffMs(failures: number, { initialMs, maxMs, factor = 2 }: BackoffOptions): number {
  assert(failures >= 1, `backoffMs(${failures}): there is nothing to back off from`);
  // 2^1000 is Infinity and min() still answers maxMs, so the exponent needs no bound of its own.
  return Math.min(initialMs * factor ** (failures - 1), maxMs);
}

/**
 * Between `ms` and `ms x (1 + fraction)`. A thousand clients cut off at once must not come back at once,
 * and none may come back sooner than its backoff says.
 */
export function jittered(ms: number, fraction: number, random: Random): number {
  return ms * (1 + fraction * random.float());
}
