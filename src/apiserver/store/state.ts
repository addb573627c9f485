import { assert } from "../../base/assert.ts";
import { abortReason, type Clock } from "../../base/clock.ts";
import { History, type KeptEvent } from "./history.ts";
import {
  CompactedError,
  HISTORY_CHARS_MAX,
  HISTORY_ENTRY_CHARS,
  HISTORY_MS_MIN,
  HISTORY_REVISIONS_MIN,
  type ScanRange,
  type StoredObject,
  type StoreEvent,
  type StoreKey,
  type StoreWatch,
  type StoreWatchOptions,
} from "./store.ts";
import { Table } from "./table.ts";
import { Texts } from "./texts.ts";
import { MemoryWatch } from "./watch.ts";

export interface StateOptions {
  readonly historyMsMin?: number;
  readonly historyRevisionsMin?: number;
  readonly historyCharsMax?: number;
  /** Bounds of what one watch may have waiting; past either it ends. */
  readonly queueEventsMax?: number;
  readonly queueBytesMax?: number;
}

/**
 * Entries that are forgotten at a time: about 0.2 ms of work. A store that comes back after an hour with
 * a long history sheds it over its next writes instead of holding up the first.
 */
const FORGET_SLICE = 256;

/**
 * All that is committed, as readers see it: objects, history, watches. Nothing here is undecided or in
 * flight, so every answer may be shown to a client. Both stores keep theirs in one of these; they differ
 * in what has to happen before `apply`.
 *
 * Why in memory, when there is a file: reads then need no checksum and little decoding (the texts of 100,000 objects
 * of 2 kB take 110 ms instead of 320), all watchers share one string, and a disk that fails takes no reader with
 * it. The price is the text of all objects and of their history, which is bounded; see `texts.ts`.
 */
export class CommittedState {
  readonly #clock: Clock;
  readonly #options: Required<StateOptions>;
  readonly #texts = new Texts();
  readonly #tables = new Map<string, Table>();
  readonly #history: History;
  #historyChars = 0;
  /** Watches that are up to date, by resource: a write touches only those it concerns. */
  readonly #live = new Map<string, Set<MemoryWatch>>();
  readonly #waiting = new Set<{ readonly revision: number; readonly resolve: () => void }>();

  /** `startRevision` is where history begins: objects as they were then are given to `seed`. */
  constructor(clock: Clock, options: StateOptions, startRevision: number) {
    assert(
      Number.isSafeInteger(startRevision) && startRevision >= 1,
      `startRevision ${startRevision} must be at least 1`,
    );
    this.#clock = clock;
    this.#options = {
      historyMsMin: options.historyMsMin ?? HISTORY_MS_MIN,
      historyRevisionsMin: options.historyRevisionsMin ?? HISTORY_REVISIONS_MIN,
      historyCharsMax: options.historyCharsMax ?? HISTORY_CHARS_MAX,
      queueEventsMax: options.queueEventsMax ?? 1_000,
      queueBytesMax: options.queueBytesMax ?? 10 * 2 ** 20,
    };
    this.#history = new History(startRevision);
  }

  get revision(): number {
    return this.#history.end;
  }

  get compactedRevision(): number {
    return this.#history.start;
  }

  get(key: StoreKey): StoredObject | undefined {
    return this.#tables.get(key.resource)?.get(key);
  }

  scan({ resource, namespace, from, atRevision = this.revision }: ScanRange): Iterable<StoredObject> {
    if (atRevision < this.compactedRevision) throw new CompactedError(atRevision, this.compactedRevision);
    return this.#tables.get(resource)?.scan({ namespace, from, atRevision }) ?? [];
  }

  /** Everything there is, of every resource. */
  *objects(): Iterable<StoredObject> {
    for (const resource of this.#tables.keys()) yield* this.scan({ resource });
  }

  watch(options: StoreWatchOptions, wake: () => void): StoreWatch {
    return new MemoryWatch(this.#history, this.#liveOf(options.resource), this.#options, options, wake);
  }

  async reach(revision: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw abortReason(signal);
    if (this.revision >= revision) return;
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(waiter);
        reject(abortReason(signal));
      };
      const waiter = {
        revision,
        resolve: () => {
          signal.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(waiter);
    });
  }

  /** An object from before the history; only while nothing has been applied. */
  seed(object: StoredObject): void {
    const table = this.#tableOf(object.key.resource);
    const key = table.share(object.key);
    table.put(key, this.#texts.keep(key, object));
  }

  /** The write of the next revision: from here on everyone sees it, and watchers are told. */
  apply(event: StoreEvent, committedAtMs = this.#clock.now()): void {
    const { type } = event;
    const { revision } = event.object;
    const table = this.#tableOf(event.object.key.resource);
    const key = table.share(event.object.key);
    const object = this.#texts.keep(key, event.object);
    const kept: KeptEvent = { type, object, previous: table.get(key) };
    this.#history.push(kept, committedAtMs);
    this.#historyChars += object.chars + HISTORY_ENTRY_CHARS;
    table.put(key, type === "deleted" ? { revision } : object);
    for (const watch of this.#liveOf(key.resource)) watch.offer(kept);
    for (const waiter of this.#waiting) {
      if (waiter.revision > revision) continue;
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
  }

  /** The writes after `revision`, which history must reach back to. */
  *eventsAfter(revision: number): Iterable<StoreEvent> {
    for (let next = revision + 1; next <= this.revision; next++) yield this.#history.at(next);
  }

  /** Forgets what is old and more than enough, and what is too large, a slice at a time; returns what it forgot. */
  forgetOld(atLeast = 0): readonly StoreEvent[] {
    const { historyMsMin, historyRevisionsMin, historyCharsMax } = this.#options;
    const beforeMs = this.#clock.now() - historyMsMin;
    const slice = Math.max(FORGET_SLICE, atLeast);
    const forgotten: StoreEvent[] = [];
    while (this.revision > this.compactedRevision && forgotten.length < slice) {
      const isEnough = this.revision - this.compactedRevision > historyRevisionsMin;
      const isOld = this.#history.oldestAtMs < beforeMs;
      if (!(isEnough && isOld) && this.#historyChars <= historyCharsMax) break;
      forgotten.push(this.#forgetOldest());
    }
    return forgotten;
  }

  /** Forgets everything before `revision`, however new; returns what it forgot. */
  forgetBefore(revision: number): readonly StoreEvent[] {
    const target = Math.min(revision, this.revision);
    const forgotten: StoreEvent[] = [];
    while (this.compactedRevision < target) forgotten.push(this.#forgetOldest());
    return forgotten;
  }

  #forgetOldest(): StoreEvent {
    const event = this.#history.dropOldest();
    const { type, object } = event;
    this.#historyChars -= object.chars + HISTORY_ENTRY_CHARS;
    const trimmed = this.#tableOf(object.key.resource).trim(object.key, this.compactedRevision);
    for (const old of trimmed) this.#texts.release(old);
    // Its last words were shown by history alone.
    if (type === "deleted") this.#texts.release(object);
    return event;
  }

  #tableOf(resource: string): Table {
    let table = this.#tables.get(resource);
    if (table === undefined) this.#tables.set(resource, (table = new Table(resource)));
    return table;
  }

  #liveOf(resource: string): Set<MemoryWatch> {
    let live = this.#live.get(resource);
    if (live === undefined) this.#live.set(resource, (live = new Set()));
    return live;
  }
}
