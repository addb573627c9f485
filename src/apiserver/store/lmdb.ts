import type { Clock } from "../../base/clock.ts";
import { silentLogger, type Logger } from "../../base/log.ts";
import { dataFile, hasStore, makePrivate, makeWhole, nextTurn, unusable, withPages } from "./lmdb-disk.ts";
import { openEnvironment, type Environment, type EnvironmentOptions } from "./lmdb-environment.ts";
import { loadState } from "./lmdb-load.ts";
import { encodeHead, HEAD_KEY } from "./lmdb-records.ts";
import { Writer } from "./lmdb-writer.ts";
import type { CommittedState, StateOptions } from "./state.ts";
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

export interface LmdbStoreOptions extends StateOptions, EnvironmentOptions {
  /** For this store alone; made if it is not there. One process at a time, which is for the caller to see to. */
  readonly directory: string;
}

interface LmdbStoreDeps {
  readonly clock: Clock;
  readonly log?: Logger;
}

/**
 * The durable store: what is acknowledged or shown to anybody is on disk. Killed at any moment it comes back with all of
 * that, without repair; see `lmdb-environment.ts` for why.
 *
 * Everything is read and checked here, once, and served from memory after that. So damage in the file shows at the
 * start, as `Corrupt` with its place, and a disk that fails later stops writes and nothing else.
 */
export async function openLmdbStore(deps: LmdbStoreDeps, options: LmdbStoreOptions): Promise<ObjectStore> {
  const { directory } = options;
  const { clock, log = silentLogger } = deps;
  if (!(await hasStore(directory))) await makeStore(directory, options);
  try {
    const state = await withPages(directory, (source) => loadState(source, clock, options));
    makePrivate(directory);
    return new DurableStore({ clock, log, environment: openEnvironment(directory, options) }, state, options);
  } catch (error) {
    throw error instanceof StoreError ? error : unusable("open", directory, error);
  }
}

const FIRST_REVISION = 1;
/** Entries of history that are forgotten between two turns of the event loop: about 1 ms of work. */
const FORGET_SLICE = 1_000;

/** A store is there with its head record or not at all: a kill in between leaves nothing that a start could stumble over. */
async function makeStore(directory: string, options: EnvironmentOptions): Promise<void> {
  try {
    await makeWhole(directory, async (draft) => {
      const environment = openEnvironment(draft, options);
      try {
        const value = encodeHead({ compactedRevision: FIRST_REVISION });
        await environment.commit({ puts: [{ key: HEAD_KEY, value }], removes: [] });
      } finally {
        await environment.close();
      }
    });
  } catch (error) {
    throw error instanceof StoreError ? error : unusable("make", directory, error);
  }
}

class DurableStore implements ObjectStore {
  readonly #environment: Environment;
  readonly #state: CommittedState;
  readonly #writer: Writer;
  readonly #options: LmdbStoreOptions;
  #closing: Promise<void> | undefined;

  constructor(
    deps: { clock: Clock; log: Logger; environment: Environment },
    state: CommittedState,
    options: LmdbStoreOptions,
  ) {
    this.#environment = deps.environment;
    this.#state = state;
    this.#writer = new Writer(deps, state);
    this.#options = options;
  }

  get revision(): number {
    return this.#state.revision;
  }

  get compactedRevision(): number {
    return this.#state.compactedRevision;
  }

  get health(): StoreHealth {
    return this.#writer.health;
  }

  get(key: StoreKey): StoredObject | undefined {
    return this.#state.get(key);
  }

  scan(range: ScanRange): Iterable<StoredObject> {
    return this.#state.scan(range);
  }

  create(key: StoreKey, render: Render): Promise<CreateOutcome> {
    return this.#submit<CreateOutcome>("created", key, render, undefined);
  }

  update(key: StoreKey, render: Render, { expected }: Condition): Promise<WriteOutcome> {
    return this.#submit<WriteOutcome>("updated", key, render, expected);
  }

  delete(key: StoreKey, render: Render, { expected }: Condition): Promise<WriteOutcome> {
    return this.#submit<WriteOutcome>("deleted", key, render, expected);
  }

  watch(options: StoreWatchOptions, wake: () => void): StoreWatch {
    return this.#state.watch(options, wake);
  }

  reach(revision: number, signal: AbortSignal): Promise<void> {
    return this.#state.reach(revision, signal);
  }

  async compact(revision: number): Promise<void> {
    const target = Math.min(revision, this.revision);
    while (this.compactedRevision < target) {
      this.#writer.discard(this.#state.forgetBefore(Math.min(target, this.compactedRevision + FORGET_SLICE)));
      await nextTurn();
    }
    await this.#writer.compact();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#writer.stop(
      new StoreError("Closed", `write to ${dataFile(this.#options.directory)}: the store is closed`),
    );
    await this.#environment.close();
  }

  #submit<Outcome extends CreateOutcome | WriteOutcome>(
    type: StoreEvent["type"],
    key: StoreKey,
    render: Render,
    expected: number | undefined,
  ): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      // A create is only ever answered as a create, everything else never is.
      const answer = (outcome: CreateOutcome | WriteOutcome) => resolve(outcome as Outcome);
      this.#writer.submit({ type, key, render, expected, resolve: answer, reject });
    });
  }
}
