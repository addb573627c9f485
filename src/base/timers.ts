import type { Timer } from "./clock.ts";
import { KeyedHeap } from "./heap.ts";

/**
 * All timers of a clock on one heap, with one alarm set for the earliest. A controller with 100,000
 * keys in backoff then costs the event loop one timer, and time is asked once a wake-up.
 */
export class TimerHeap {
  readonly #heap = new KeyedHeap<number, () => void>();
  #lastId = 0;

  /** When the earliest is due; undefined when none is set. */
  get nextAtMs(): number | undefined {
    return this.#heap.peek()?.priority;
  }

  get size(): number {
    return this.#heap.size;
  }

  add(atMs: number, callback: () => void): Timer {
    const id = ++this.#lastId;
    this.#heap.set(id, atMs, callback);
    return { cancel: () => void this.#heap.delete(id) };
  }

  /** Takes the earliest off the heap if it is due at `nowMs`. */
  takeDue(nowMs: number): (() => void) | undefined {
    const first = this.#heap.peek();
    if (first === undefined || first.priority > nowMs) return undefined;
    return this.#heap.pop()?.value;
  }
}
