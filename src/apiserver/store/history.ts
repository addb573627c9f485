import { assert } from "../../base/assert.ts";
import type { StoreEvent } from "./store.ts";

export interface HistoryEntry {
  readonly event: StoreEvent;
  readonly committedAtMs: number;
}

/**
 * The writes after `start`, one a revision, so that the entry of a revision is found by subtraction.
 * Bounded by its owner, who drops the oldest.
 */
export class History {
  #entries: HistoryEntry[] = [];
  /** Entries before this one are dropped; the array is cut when half of it is waste. */
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
    return this.#start + this.#entries.length - this.#head;
  }

  push(entry: HistoryEntry): void {
    const revision = entry.event.object.revision;
    assert(revision === this.end + 1, `history at ${this.end} was given revision ${revision}`);
    this.#entries.push(entry);
  }

  /** Only for revisions in (start, end]. */
  at(revision: number): HistoryEntry {
    const entry = this.#entries[this.#head + revision - this.#start - 1];
    assert(entry !== undefined, `revision ${revision} is not in the history (${this.#start}, ${this.end}]`);
    return entry;
  }

  dropOldest(): HistoryEntry {
    const entry = this.at(this.#start + 1);
    this.#head++;
    this.#start++;
    if (this.#head > 1_024 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    return entry;
  }
}
