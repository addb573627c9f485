import { assert } from "../../base/assert.ts";
import { backoffMs, type BackoffOptions } from "../../base/backoff.ts";
import { KeyedHeap } from "../../base/heap.ts";
import { LaneRing } from "./lanes.ts";

/**
 * Which key is worked on next: the whole decision, without a clock, a promise or a timer. Time comes in
 * as `nowMs`; `createWorkQueue` adds the waiting.
 *
 * Callers may rely on:
 * - a key is handed out to one worker at a time; added meanwhile, it comes once more after `done`;
 * - adding a key that waits already changes nothing;
 * - a delayed add and an immediate add know nothing of each other: an event does not cancel a retry;
 * - lanes take turns, so a lane of 10,000 keys delays a lane of one by one key, not by 10,000;
 * - every call is O(1), or O(log n) where a heap is involved; nothing scans.
 *
 * Callers may not rely on: order between lanes, or any order between two keys that were delayed to the
 * same millisecond.
 *
 * Bound: a key is here at most once ready, once in work and once delayed, so the queue is never larger
 * than the set of keys that exist. Failure counters live until `forget`.
 */
export class WorkQueueCore<K extends string> {
  readonly #backoff: BackoffOptions;
  readonly #laneOf: (key: K) => string;
  readonly #lanes: LaneRing<K>;
  /** Ready keys by the time they were added: the head is the oldest. */
  readonly #ready = new KeyedHeap<K>();
  readonly #running = new Map<K, Run>();
  readonly #delayed = new KeyedHeap<K, Delay>();
  readonly #failures = new Map<K, number>();

  constructor({ backoff, laneOf = () => "", perLaneMax = Infinity }: CoreOptions<K>) {
    this.#backoff = backoff;
    this.#laneOf = laneOf;
    this.#lanes = new LaneRing(perLaneMax);
  }

  /** Keys ready to be handed out, those of a lane at its limit included. */
  get depth(): number {
    return this.#ready.size;
  }

  get delayed(): number {
    return this.#delayed.size;
  }

  /** When the longest waiting of the ready keys was added. */
  get oldestAddedMs(): number | undefined {
    return this.#ready.peek()?.priority;
  }

  /** When the next delayed key comes due. */
  get nextDueMs(): number | undefined {
    return this.#delayed.peek()?.priority;
  }

  /** Keys in work. */
  get running(): number {
    return this.#running.size;
  }

  /** Since when each key in work has been there; as many as there are workers. */
  *runningSinceMs(): Iterable<number> {
    for (const run of this.#running.values()) yield run.startedMs;
  }

  failures(key: K): number {
    return this.#failures.get(key) ?? 0;
  }

  /** False if the key was waiting already. */
  add(key: K, nowMs: number): boolean {
    const run = this.#running.get(key);
    if (run !== undefined) {
      if (run.addedAgainMs !== undefined) return false;
      run.addedAgainMs = nowMs;
      return true;
    }
    if (this.#ready.has(key)) return false;
    this.#enqueue(key, nowMs);
    return true;
  }

  /** Adds the key once `atMs` has come; of several such times the earliest counts. */
  addAt(key: K, atMs: number): void {
    const delay = this.#delayed.get(key)?.value ?? {};
    this.#setDelay(key, { ...delay, plannedMs: Math.min(delay.plannedMs ?? Infinity, atMs) });
  }

  /** Counts a failure and adds the key again after its backoff, which is returned. */
  retry(key: K, nowMs: number): number {
    const failures = this.failures(key) + 1;
    this.#failures.set(key, failures);
    const delayMs = backoffMs(failures, this.#backoff);
    this.#setDelay(key, { ...this.#delayed.get(key)?.value, backoffMs: nowMs + delayMs });
    return delayMs;
  }

  /** The key did well or is gone: the next failure is a first one, and a retry still waiting has no reason left. */
  forget(key: K): void {
    this.#failures.delete(key);
    this.#dropBackoff(key);
  }

  /**
   * What the key failed for may have changed: it counts from zero, and if it waited for its backoff it is
   * ready now. In work, it may be failing for the old reason this moment, so it comes once more.
   */
  resetBackoff(key: K, nowMs: number): boolean {
    this.#failures.delete(key);
    const waited = this.#dropBackoff(key);
    return (waited || this.#running.has(key)) && this.add(key, nowMs);
  }

  /** Moves what has come due to the ready keys and returns how many were new there. */
  promote(nowMs: number): number {
    let promoted = 0;
    for (
      let due = this.#delayed.peek();
      due !== undefined && due.priority <= nowMs;
      due = this.#delayed.peek()
    ) {
      const { plannedMs = Infinity, backoffMs: retryMs = Infinity } = due.value;
      this.#setDelay(due.key, {
        ...(plannedMs > nowMs && { plannedMs }),
        ...(retryMs > nowMs && { backoffMs: retryMs }),
      });
      if (this.add(due.key, nowMs)) promoted++;
    }
    return promoted;
  }

  /** The next key, now in work until `done`; undefined when none is ready or every lane is at its limit. */
  take(nowMs: number): Taken<K> | undefined {
    const next = this.#lanes.take();
    if (next === undefined) return undefined;
    const ready = this.#ready.delete(next.key);
    assert(ready !== undefined, `work queue: lane ${next.lane} holds ${next.key}, which is not ready`);
    this.#running.set(next.key, { lane: next.lane, startedMs: nowMs, addedAgainMs: undefined });
    return { key: next.key, waitedMs: nowMs - ready.priority };
  }

  /** The worker let go of the key; returns how long it held it. */
  done(key: K, nowMs: number): number {
    const run = this.#running.get(key);
    assert(run !== undefined, `work queue: done(${key}), which no worker has`);
    this.#running.delete(key);
    if (run.addedAgainMs !== undefined) this.#enqueue(key, run.addedAgainMs);
    this.#lanes.release(run.lane);
    return nowMs - run.startedMs;
  }

  #enqueue(key: K, addedMs: number): void {
    this.#ready.set(key, addedMs, undefined);
    // Asked here and not at the first add: a VolumeAttachment changes from the attach to the detach lane.
    this.#lanes.push(this.#laneOf(key), key);
  }

  #dropBackoff(key: K): boolean {
    const delay = this.#delayed.get(key)?.value;
    if (delay?.backoffMs === undefined) return false;
    this.#setDelay(key, delay.plannedMs === undefined ? {} : { plannedMs: delay.plannedMs });
    return true;
  }

  #setDelay(key: K, delay: Delay): void {
    const atMs = Math.min(delay.plannedMs ?? Infinity, delay.backoffMs ?? Infinity);
    if (atMs === Infinity) this.#delayed.delete(key);
    else this.#delayed.set(key, atMs, delay);
  }
}

export interface CoreOptions<K> {
  readonly backoff: BackoffOptions;
  /** Whom a key shares its turn with, for example its node; all share one lane where absent. Must not throw. */
  readonly laneOf?: (key: K) => string;
  /** Keys of one lane in work at once. */
  readonly perLaneMax?: number;
}

export interface Taken<K> {
  readonly key: K;
  readonly waitedMs: number;
}

interface Run {
  readonly lane: string;
  readonly startedMs: number;
  /** Set when the key was added while in work. */
  addedAgainMs: number | undefined;
}

/** The two reasons a key may be delayed for. They do not overwrite each other. */
interface Delay {
  readonly plannedMs?: number;
  readonly backoffMs?: number;
}
