import type { Operation } from "./plan.ts";

/** Completions that the pace is measured by. */
const PACE_SAMPLES = 32;

/**
 * What waits, since when, and how long it will take: upstream shows none of it, and pods wait 45 minutes without a sign
 * (external-attacher #706). Bound: one entry an attachment that is not done.
 */
export class Backlog {
  /** In the order in which they came: the first is the oldest. */
  readonly #sinceMs: Record<Operation, Map<string, number>> = { attach: new Map(), detach: new Map() };
  readonly #completedMs: Record<Operation, number[]> = { attach: [], detach: [] };

  /** What is to be done with it from now on; undefined for nothing. What waited already keeps its place. */
  set(key: string, operation: Operation | undefined, nowMs: number): void {
    for (const other of ["attach", "detach"] as const)
      if (other !== operation) this.#sinceMs[other].delete(key);
    if (operation === undefined || this.#sinceMs[operation].has(key)) return;
    this.#sinceMs[operation].set(key, nowMs);
  }

  completed(operation: Operation, nowMs: number): void {
    const times = this.#completedMs[operation];
    times.push(nowMs);
    if (times.length > PACE_SAMPLES) times.shift();
  }

  size(operation: Operation): number {
    return this.#sinceMs[operation].size;
  }

  oldest(operation: Operation): { readonly key: string; readonly sinceMs: number } | undefined {
    const first = this.#sinceMs[operation].entries().next();
    return first.done ? undefined : { key: first.value[0], sinceMs: first.value[1] };
  }

  sinceMs(operation: Operation, key: string): number | undefined {
    return this.#sinceMs[operation].get(key);
  }

  /** Until all is done, at the pace of the last completions; Infinity while there were none. */
  etaMs(operation: Operation, nowMs: number): number {
    const times = this.#completedMs[operation];
    if (this.size(operation) === 0) return 0;
    const first = times[0];
    return first === undefined ? Infinity : (this.size(operation) * (nowMs - first)) / times.length;
  }
}
