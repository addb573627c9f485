import { assert } from "../../base/assert.ts";
import type { StoreEvent } from "./store.ts";
import type { KeptObject } from "./texts.ts";

/** A write as the state keeps it. */
export interface KeptEvent extends StoreEvent {
  readonly object: KeptObject;
  readonly previous: KeptObject | undefined;
}

/**
 * The writes after `start`, one a revision, so that the entry of a revision is found by subtraction.
 * Bounded by its owner, who drops the oldest.
 */
export class History {
  #events: (KeptEvent | undefined)[] = [];
  /** When each was committed: numbers in an array of their own take 8 bytes, in an object each 56. */
  #committedAtMs: number[] = [];
  /** Entries before this one are dropped; the arrays are cut when half of them is waste. */
  #head = 0;
  #start: number;

  constructor(start: number) {
    this.#start = start;
  }

  /** The revision before the oldest entry. */
  get start(): number {
    return this.#start;
  }

  /** The revision of the newest entry; `start` when there is none. */
  get end(): number {
    return this.#start + this.#events.length - this.#head;
  }

  push(event: KeptEvent, committedAtMs: number): void {
    const { revision } = event.object;
    assert(revision === this.end + 1, `history at ${this.end} was given revision ${revision}`);
    this.#events.push(event);
    this.#committedAtMs.push(committedAtMs);
  }

  /** Only for revisions in (start, end]. */
  at(revision: number): KeptEvent {
    const event = this.#events[this.#head + revision - this.#start - 1];
    assert(event !== undefined, `revision ${revision} is not in the history (${this.#start}, ${this.end}]`);
    return event;
  }

  /** When the oldest was committed; Infinity when there is none. */
  get oldestAtMs(): number {
    return this.#committedAtMs[this.#head] ?? Infinity;
  }

  dropOldest(): KeptEvent {
    const event = this.at(this.#start + 1);
    // Not held until the arrays are cut, because of the texts that come with it.
    this.#events[this.#head++] = undefined;
    this.#start++;
    if (this.#head > 1_024 && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head);
      this.#committedAtMs = this.#committedAtMs.slice(this.#head);
      this.#head = 0;
    }
    return event;
  }
}
