import { open, type RootDatabase, type RootDatabaseOptionsWithPath } from "lmdb";
import {
  dataBytes,
  dataFile,
  hasFailureNote,
  lockFile,
  noteFailure,
  removeFailureNote,
} from "./lmdb-disk.ts";
import {
  allocateLock,
  freeBytesAt,
  isWithoutData,
  LOCK_BYTES,
  openFileRoom,
  reserveBytesAt,
  type FileRoom,
} from "./lmdb-disk-room.ts";
import type { TreeRecord } from "./lmdb-tree.ts";
import { StoreError } from "./store.ts";

/** What changes together. */
export interface Changes {
  readonly puts: readonly { readonly key: Buffer; readonly value: Buffer }[];
  readonly removes: readonly Buffer[];
}

/**
 * What a commit does to the size of what is stored, and so how much of the reserve it may use. `growth` leaves it whole;
 * `steady`, where as much goes as comes, may use half of it; `removal` all.
 */
export type Purpose = "growth" | "steady" | "removal";

/** A file that changes by transactions. */
export interface Environment {
  /**
   * All of it or nothing; on disk when it resolves. Rejects with StoreError: after `Full` the next commit may
   * work, after `WriteFailed` there must be none. One at a time.
   */
  commit(changes: Changes, purpose?: Purpose): Promise<void>;
  /** Why nothing can grow at present; undefined where it can. */
  shortage(): StoreError | undefined;
  close(): Promise<void>;
}

export interface EnvironmentOptions {
  /** Address space to begin with; the engine doubles it when the file outgrows it. */
  readonly mapBytes?: number;
}

/** 256 MB of address space is 60,000 objects; memory is taken only for pages that are touched. */
const MAP_BYTES = 256 * 2 ** 20;
/** The size of a page is part of the file; the same everywhere lets a store move between machines. */
const PAGE_BYTES = 4_096;
/** What a commit may need beside its values: the paths of both trees to the root, written anew. */
const COMMIT_BYTES = 128 * 1024;
/** Longer values get pages of their own. */
const INLINE_BYTES_MAX = 2_000;
/** The shares of the reserve that stay, by purpose. */
const KEPT_SHARES: Readonly<Record<Purpose, number>> = { growth: 1, steady: 1 / 2, removal: 0 };

/** A writer of 100 MB a second needs ten seconds for it. */
const READ_AHEAD_BYTES = 2 ** 30;

/** The engine's own numbers: `errno` is positive, LMDB's are negative. */
const ENOSPC = 28;
const EDQUOT = 122;
const EIO = 5;

/**
 * The only place that knows the engine. Two of its settings carry the promise of durability:
 *
 * - `overlappingSync: false`, which is not its default: a commit then is `pwrite` of the data, `fdatasync`, `pwrite` of the
 *   meta page through a descriptor opened with O_DSYNC, and only then the promise. Seen with strace, in that order.
 *   With overlapping syncs the promise resolves before the sync.
 * - `eventTurnBatching: false`: with it, a failed commit also rejects a promise that nobody can hold, which ends the process.
 *
 * Not used, because they never answer after a failed commit: `transaction()` with a callback.
 */
export function openEnvironment(
  directory: string,
  { mapBytes = MAP_BYTES }: EnvironmentOptions = {},
): Environment {
  return new LmdbEnvironment(directory, mapBytes);
}

/**
 * Reads the last commit of a file that another process is writing. That process is not held up: it goes on with new pages
 * and leaves those of this transaction alone, for which the lock file beside the data names us as a reader. Killed
 * here, we stay in that file until the next process opens it or the writer looks, every ten minutes (`Write` in the
 * engine's writer.cpp); until then the file grows instead of using pages again, and nothing else happens.
 *
 * The engine trusts the pages it maps, so this is for files whose writer has checked them at its start.
 */
export async function readCommitted<T>(
  directory: string,
  work: (records: Iterable<TreeRecord>) => T,
): Promise<T> {
  // Room for all that the writer adds between the opening and the transaction; address space costs nothing.
  const mapSize = 2 * dataBytes(directory) + READ_AHEAD_BYTES;
  const database = open<Buffer, Buffer>({ ...SETTINGS, path: directory, mapSize, readOnly: true });
  try {
    const transaction = database.useReadTransaction();
    try {
      return work(recordsOf(database, transaction));
    } finally {
      transaction.done();
    }
  } finally {
    await database.close();
  }
}

type Transaction = ReturnType<RootDatabase["useReadTransaction"]>;

function* recordsOf(database: RootDatabase<Buffer, Buffer>, transaction: Transaction): Iterable<TreeRecord> {
  for (const { key, value } of database.getRange({ transaction })) yield [key, value];
}

const SETTINGS = {
  noSubdir: false,
  maxDbs: 1,
  encoding: "binary",
  keyEncoding: "binary",
  overlappingSync: false,
} as const;

function openDatabase(directory: string, mapBytes: number): RootDatabase<Buffer, Buffer> {
  const options: RootDatabaseOptionsWithPath & { readonly permissionsMode: number } = {
    ...SETTINGS,
    path: directory,
    eventTurnBatching: false,
    pageSize: PAGE_BYTES,
    mapSize: mapBytes,
    permissionsMode: 0o600,
  };
  return open<Buffer, Buffer>(options);
}

class LmdbEnvironment implements Environment {
  readonly #directory: string;
  readonly #mapBytes: number;
  readonly #room: FileRoom;
  #database: RootDatabase<Buffer, Buffer>;
  /** Whether a failed commit is noted beside the file, by this process or the one before. */
  #isNoted: boolean;

  /** What the last commit needed for which there was no room on the disk; the least that any needs if there was. */
  #refusedBytes = COMMIT_BYTES;

  constructor(directory: string, mapBytes: number) {
    this.#directory = directory;
    this.#mapBytes = mapBytes;
    this.#isNoted = hasFailureNote(directory);
    checkOpening(directory);
    this.#database = openDatabase(directory, mapBytes);
    this.#room = openFileRoom(directory, PAGE_BYTES);
    this.#room.ensureTail(this.#room.reserveBytes);
  }

  async commit(changes: Changes, purpose: Purpose = "growth"): Promise<void> {
    this.#checkDisk();
    this.#checkRoom(changes, purpose);
    const last = this.#room.transaction();
    const database = this.#database;
    try {
      await database.batch(() => {
        // Within a batch these promises tell nothing; the one of the batch does.
        for (const { key, value } of changes.puts) void database.put(key, value);
        for (const key of changes.removes) void database.remove(key);
      });
    } catch (error) {
      // At once: until somebody looks at it, the promise it holds counts as a rejection that nobody handles.
      const reason = await reasonOf(error);
      this.#isNoted = true;
      await noteFailure(this.#directory);
      throw await this.#explain(reason, last);
    }
    if (this.#isNoted) this.#isNoted = !(await removeFailureNote(this.#directory));
  }

  shortage(): StoreError | undefined {
    const missing = this.#room.reserveBytes + this.#refusedBytes - this.#room.tailBytes();
    return missing <= this.#room.freeBytes() ? undefined : this.#full(this.#refusedBytes);
  }

  async close(): Promise<void> {
    this.#room.close();
    await this.#database.close();
  }

  /**
   * A file system that the kernel made read-only (a journal that failed) is found out before the engine does, for the same
   * reason as a full one, below. It still says that it is mounted for writing, so that only a change tells.
   */
  #checkDisk(): void {
    try {
      this.#room.probe();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const why =
        code === "EROFS"
          ? "the file system has become read-only (the kernel's log says why): repair it, mount it for writing and start again"
          : message;
      throw this.#failed(why, error);
    }
  }

  #failed(why: string, cause: unknown): StoreError {
    return new StoreError(
      "WriteFailed",
      `write to ${dataFile(this.#directory)}: ${why}; no more writes until a restart, reads go on`,
      { cause },
    );
  }

  /**
   * A full disk is found out before the engine does: where it cannot write a page it composes a message of up to 127
   * bytes in a buffer of 100 (`mdb_page_flush`, 3.5.6), which may end the process. So every byte that a commit may need is
   * allocated, behind the last page. Where the disk gives no more, pages that are free within the file do as well, twice as
   * many as are needed, because they lie scattered; long values, which need neighbours, still have to fit behind.
   */
  #checkRoom(changes: Changes, purpose: Purpose): void {
    const { single, long } = bytesOf(changes);
    const kept = KEPT_SHARES[purpose] * this.#room.reserveBytes;
    if (this.#room.ensureTail(single + long + kept)) {
      if (purpose === "growth") this.#refusedBytes = COMMIT_BYTES;
      return;
    }
    if (purpose === "growth") this.#refusedBytes = single + long;
    const fitsInside = this.#room.reusableBytes() >= 2 * (single + long);
    if (fitsInside && this.#room.tailBytes() >= long + kept / 2) return;
    throw this.#full(single + long);
  }

  /**
   * Should it fill up in that very moment, that shows as ENOSPC, or as an input/output error when a write of several pages
   * got half way. The transaction is gone then, and the next one writes every page it refers to anew, so that
   * trying again is safe.
   */
  async #explain(error: EngineError, last: number): Promise<StoreError> {
    const isShort = this.#room.freeBytes() < COMMIT_BYTES;
    const isFull = error.code === ENOSPC || error.code === EDQUOT || (error.code === EIO && isShort);
    if (isFull && (await this.#comesBackAt(last))) return this.#full(COMMIT_BYTES, error);
    return this.#failed(error.message, error);
  }

  #full(needed: number, cause?: unknown): StoreError {
    const [free, wanted] = [this.#room.freeBytes(), needed + this.#room.reserveBytes].map(
      (bytes) => `${Math.floor(bytes / 1024)} kB`,
    );
    return new StoreError(
      "Full",
      `write to ${dataFile(this.#directory)}: the disk is full (${free} free, ${wanted} needed with the reserve); ` +
        "objects can be read, deleted and replaced by ones that are no larger; delete some, or make room on the disk",
      { cause },
    );
  }

  /**
   * Opens the file anew and sees whether the failed commit is in it. Where the meta page could not be written, the engine
   * refuses every later transaction, and it does so by never answering; a new environment knows nothing of that.
   */
  async #comesBackAt(transaction: number): Promise<boolean> {
    try {
      await this.#database.close();
      this.#database = openDatabase(this.#directory, this.#mapBytes);
      return this.#room.transaction() === transaction;
    } catch {
      return false;
    }
  }
}

/**
 * What the engine needs room for while it opens, found out before it does: where there is none it ends the process instead of
 * throwing (SIGBUS with 12 kB free on ext4, SIGSEGV with 16 to 20).
 */
function checkOpening(directory: string): void {
  const isNew = isWithoutData(directory);
  const needed = isNew ? reserveBytesAt(directory, PAGE_BYTES) + COMMIT_BYTES + LOCK_BYTES : LOCK_BYTES;
  if (isNew && freeBytesAt(directory) < needed) throw fullAtOpening(directory, dataFile(directory), needed);
  if (!allocateLock(directory)) throw fullAtOpening(directory, lockFile(directory), LOCK_BYTES);
}

function fullAtOpening(directory: string, path: string, needed: number): StoreError {
  const [free, wanted] = [freeBytesAt(directory), needed].map((bytes) => `${Math.ceil(bytes / 1024)} kB`);
  return new StoreError(
    "Full",
    `make ${path}: the disk is full (${free} free, ${wanted} needed); make room on it, or choose another place`,
  );
}

/** At most: values on pages of their own, and what is put into or taken from pages that others share. */
function bytesOf({ puts, removes }: Changes): { readonly single: number; readonly long: number } {
  let [single, long] = [COMMIT_BYTES + removes.length * PAGE_BYTES, 0];
  for (const { value } of puts) {
    const pages = Math.ceil((value.length + 64) / PAGE_BYTES) * PAGE_BYTES;
    if (value.length <= INLINE_BYTES_MAX) single += 2 * (value.length + 64);
    else if (pages === PAGE_BYTES) single += 2 * PAGE_BYTES;
    else long += pages + PAGE_BYTES;
  }
  return { single, long };
}

type EngineError = Error & { readonly code?: unknown };

/** The engine rejects with a general error that holds a promise of the real one. */
async function reasonOf(error: unknown): Promise<EngineError> {
  const { commitError } = error as { readonly commitError?: Promise<never> };
  try {
    await commitError;
  } catch (reason) {
    if (reason instanceof Error) return reason;
  }
  return error instanceof Error ? error : new Error(String(error));
}
