import type { Clock } from "../../base/clock.ts";
import { CommittedState, type StateOptions } from "./state.ts";
import {
  StoreError,
  type Condition,
  type CreateOutcome,
  type ObjectStore,
  type Render,
  type ScanRange,
  type StoredObject,
  type StoreEvent,
  type StoreHealth,
  type StoreKey,
  type StoreWatch,
  type StoreWatchOptions,
  type WriteOutcome,
} from "./store.ts";

export interface MemoryStoreOptions extends StateOptions {
  /**
   * The revision of the empty store. Whoever starts again with nothing should begin above everything
   * handed out before: then clients with an old revision are told to list again instead of waiting
   * for a number that comes back with another meaning.
   */
  readonly startRevision?: number;
}

/** Everything in memory, nothing on disk: for simulations and tests. Its durable twin is `lmdb.ts`. */
export function createMemoryStore(deps: { clock: Clock }, options: MemoryStoreOptions = {}): ObjectStore {
  return new MemoryStore(deps.clock, options);
}

class MemoryStore implements ObjectStore {
  readonly #state: CommittedState;
  #closed = false;

  constructor(clock: Clock, options: MemoryStoreOptions) {
    this.#state = new CommittedState(clock, options, options.startRevision ?? 1);
  }

  get revision(): number {
    return this.#state.revision;
  }

  get compactedRevision(): number {
    return this.#state.compactedRevision;
  }

  get health(): StoreHealth {
    return this.#closed ? { kind: "failed", why: "the store is closed" } : { kind: "ok" };
  }

  get(key: StoreKey): StoredObject | undefined {
    return this.#state.get(key);
  }

  scan(range: ScanRange): Iterable<StoredObject> {
    return this.#state.scan(range);
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
    return this.#state.watch(options, wake);
  }

  reach(revision: number, signal: AbortSignal): Promise<void> {
    return this.#state.reach(revision, signal);
  }

  async compact(revision: number): Promise<void> {
    this.#state.forgetBefore(revision);
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  /** Runs without an await from the check of its condition to the last watcher told: that is the transaction. */
  #commit(type: StoreEvent["type"], key: StoreKey, render: Render): StoredObject {
    if (this.#closed)
      throw new StoreError("Closed", `write ${key.resource} "${key.name}": the store is closed`);
    const revision = this.revision + 1;
    const object: StoredObject = { key, revision, text: render(revision) };
    this.#state.apply({ type, object, previous: this.get(key) });
    this.#state.forgetOld();
    return object;
  }
}
