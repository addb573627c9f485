import { backoffMs, type BackoffOptions } from "../base/backoff.ts";

/**
 * When each key may be tried again. The work queue's own back-off does not do: any event about the key brings it back at
 * once, and our own writes are events.
 *
 * Bound: an entry for each key that failed, until it does well or is gone.
 */
export class Attempts {
  readonly #backoff: BackoffOptions;
  readonly #failed = new Map<string, { readonly failures: number; readonly nextMs: number }>();

  constructor(backoff: BackoffOptions = { initialMs: 1_000, maxMs: 300_000 }) {
    this.#backoff = backoff;
  }

  /** 0 if it may be tried now. */
  waitMs(key: string, nowMs: number): number {
    return Math.max(0, (this.#failed.get(key)?.nextMs ?? nowMs) - nowMs);
  }

  /** Counts a failure and answers how long to wait. */
  failed(key: string, nowMs: number): number {
    const failures = (this.#failed.get(key)?.failures ?? 0) + 1;
    const waitMs = backoffMs(failures, this.#backoff);
    this.#failed.set(key, { failures, nextMs: nowMs + waitMs });
    return waitMs;
  }

  /** It did well, is gone, or what it failed for has changed. */
  forget(key: string): void {
    this.#failed.delete(key);
  }
}
