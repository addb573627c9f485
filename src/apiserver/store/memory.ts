import { assert } from "../../base/assert.ts";
import { abortReason, type Clock } from "../../base/clock.ts";
import { History } from "./history.ts";
import {
  CompactedError,
  HISTORY_MS_MIN,
  HISTORY_REVISIONS_MIN,
  type Condition,
  type CreateOutcome,
  type ObjectStore,
  type Render,
  type ScanRange,
  type StoredObject,
  type StoreEvent,
  type StoreKey,
  type StoreWatch,
  type StoreWatchOptions,
  type WriteOutcome,
} from "./store.ts";
import { Table } from "./table.ts";
import { MemoryWatch } from "./watch.ts";

export interface MemoryStoreOptions {
  /**
   * The revision of the empty store. Whoever starts again with nothing should begin above everything
   * handed out before: then clients with an old revision are told to list again instead of waiting
   * for a number that comes back with another meaning.
   */
  readonly startRevision?: number;
  readonly historyMsMin?: number;
  readonly historyRevisionsMin?: number;
  /** Bounds of what one watch may have waiting; past either it ends. */
  readonly queueEventsMax?: number;
  readonly queueBytesMax?: number;
}

/** Everything in memory, nothing on disk: for simulations, and for `mooring up` until a disk twin exists. */
export function createMemoryStore(deps: { clock: Clock }, options: MemoryStoreOptions = {}): ObjectStore {
  return new MemoryStore(deps.clock, options);
}

class MemoryStore implements ObjectStore {
  readonly #clock: Clock;
  readonly #options: Required<MemoryStoreOptions>;
  readonly #tables = new Map<string, Table>();
  readonly #history: History;
  /** Watches that are up to date, by resource: a write touches only those it concerns. */
  readonly #live = new Map<string, Set<MemoryWatch>>();
  readonly #waiting = new Set<{ readonly revision: number; readonly resolve: () => void }>();

  constructor(clock: Clock, options: MemoryStoreOptions) {
    this.#clock = clock;
    this.#options = {
      startRevision: options.startRevision ?? 1,
      historyMsMin: options.historyMsMin ?? HISTORY_MS_MIN,
      historyRevisionsMin: options.historyRevisionsMin ?? HISTORY_REVISIONS_MIN,
      queueEventsMax: options.queueEventsMax ?? 1_000,
      queueBytesMax: options.queueBytesMax ?? 10 * 2 ** 20,
    };
    const { startRevision } = this.#options;
    assert(
      Number.isSafeInteger(startRevision) && startRevision >= 1,
      `startRevision ${startRevision} must be at least 1`,
    );
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

  async create(key: StoreKey, render: Render): Promise<CreateOutcome> {
    const existing = this.get(key);
    if (existing !== undefined) return { kind: "exists", object: existing };
    return { kind: "committed", object: this.#commit("created", key, render) };
  }

  async update(key: StoreKey, render: Render, { expected }: Condition): Promise<WriteOutcome> {
    if (this.get(key)?.revision !== expected) return { kind: "conflict" };
    return { kind: "committed", object: this.#commit("updated", key, render) };
  }

  async delete(key: StoreKey, render: Render, { expected }: Condition): Promise<WriteOutcome> {
    if (this.get(key)?.revision !== expected) return { kind: "conflict" };
    return { kind: "committed", object: this.#commit("deleted", key, render) };
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

  async compact(revision: number): Promise<void> {
    const target = Math.min(revision, this.revision);
    while (this.compactedRevision < target) this.#forgetOldest();
  }

  /** Runs without an await from the check of its condition to the last watcher told: that is the transaction. */
  #commit(type: StoreEvent["type"], key: StoreKey, render: Render): StoredObject {
    const revision = this.revision + 1;
    const object: StoredObject = { key, revision, text: render(revision) };
    const event: StoreEvent = { type, object, previous: this.get(key) };
    this.#tableOf(key.resource).put(key, revision, type === "deleted" ? undefined : object);
    this.#history.push({ event, committedAtMs: this.#clock.now() });
    for (const watch of this.#liveOf(key.resource)) watch.offer(event);
    for (const waiter of this.#waiting) {
      if (waiter.revision > revision) continue;
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
    this.#forgetOld();
    return object;
  }

  /** Each write pays for the forgetting of about one, so that no write waits for a large compaction. */
  #forgetOld(): void {
    const { historyMsMin, historyRevisionsMin } = this.#options;
    const beforeMs = this.#clock.now() - historyMsMin;
    while (this.revision - this.compactedRevision > historyRevisionsMin) {
      if (this.#history.at(this.compactedRevision + 1).committedAtMs >= beforeMs) return;
      this.#forgetOldest();
    }
  }

  #forgetOldest(): void {
    const { event } = this.#history.dropOldest();
    this.#tableOf(event.object.key.resource).trim(event.object.key, this.compactedRevision);
  }

  #tableOf(resource: string): Table {
    let table = this.#tables.get(resource);
    if (table === undefined) this.#tables.set(resource, (table = new Table()));
    return table;
  }

  #liveOf(resource: string): Set<MemoryWatch> {
    let live = this.#live.get(resource);
    if (live === undefined) this.#live.set(resource, (live = new Set()));
    return live;
  }
}
