import type { History, KeptEvent } from "./history.ts";
import type { StoreEvent, StoreWatch, StoreWatchOptions } from "./store.ts";

/**
 * One watch has two lives. First it reads the shared history at its own pace and holds nothing. Once it
 * has caught up it is `live`: writes are put into a queue of its own, bounded in events and bytes. A
 * reader too slow for that is let go and resumes from the revision it saw last.
 */
export class MemoryWatch implements StoreWatch {
  readonly #history: History;
  readonly #live: Set<MemoryWatch>;
  readonly #bounds: { readonly queueEventsMax: number; readonly queueBytesMax: number };
  readonly #options: StoreWatchOptions;
  readonly #wake: () => void;
  #state: StoreWatch["state"] = "open";
  #closed = false;
  /** The last revision looked at while reading history. */
  #readUpTo: number;
  #queue: (KeptEvent | undefined)[] = [];
  #queueHead = 0;
  #queueBytes = 0;

  constructor(
    history: History,
    live: Set<MemoryWatch>,
    bounds: { readonly queueEventsMax: number; readonly queueBytesMax: number },
    options: StoreWatchOptions,
    wake: () => void,
  ) {
    this.#history = history;
    this.#live = live;
    this.#bounds = bounds;
    this.#options = options;
    this.#wake = wake;
    this.#readUpTo = options.afterRevision;
  }

  get state(): StoreWatch["state"] {
    // A reader first gets what it has waiting, then learns that the watch ended.
    return this.#queueHead < this.#queue.length ? "open" : this.#state;
  }

  take(): StoreEvent | undefined {
    if (this.#closed) return undefined;
    if (this.#live.has(this) || this.#state !== "open") return this.#takeQueued();
    return this.#takeFromHistory();
  }

  close(): void {
    this.#closed = true;
    this.#live.delete(this);
    this.#queue = [];
    this.#queueHead = 0;
  }

  /** A write of this watch's resource was committed. */
  offer(event: KeptEvent): void {
    if (!this.#concerns(event)) return;
    const { queueEventsMax, queueBytesMax } = this.#bounds;
    const bytes = event.object.chars;
    const waiting = this.#queue.length - this.#queueHead;
    // One event is always accepted: an object larger than the bound must not make the watch impossible.
    if (waiting >= queueEventsMax || (waiting > 0 && this.#queueBytes + bytes > queueBytesMax)) {
      this.#state = "overflowed";
      this.#live.delete(this);
    } else {
      this.#queue.push(event);
      this.#queueBytes += bytes;
    }
    this.#wake();
  }

  #takeFromHistory(): StoreEvent | undefined {
    if (this.#readUpTo < this.#history.start) {
      this.#state = "expired";
      return undefined;
    }
    while (this.#readUpTo < this.#history.end) {
      const event = this.#history.at(++this.#readUpTo);
      if (this.#concerns(event)) return event;
    }
    this.#live.add(this);
    return undefined;
  }

  #takeQueued(): StoreEvent | undefined {
    const event = this.#queue[this.#queueHead];
    if (event === undefined) return undefined;
    this.#queueBytes -= event.object.chars;
    this.#queue[this.#queueHead++] = undefined;
    // Cut off what was taken, also for a reader that is always one event behind.
    if (this.#queueHead === this.#queue.length || this.#queueHead > 1_024) {
      this.#queue = this.#queueHead === this.#queue.length ? [] : this.#queue.slice(this.#queueHead);
      this.#queueHead = 0;
    }
    return event;
  }

  #concerns({ object: { key, revision } }: StoreEvent): boolean {
    const { resource, namespace, afterRevision } = this.#options;
    if (key.resource !== resource || revision <= afterRevision) return false;
    return namespace === undefined || key.namespace === namespace;
  }
}
