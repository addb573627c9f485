/**
 * Where objects live: text by key, one revision counter for everything, and enough history to answer
 * "as of revision N" and "everything since N".
 *
 * Callers may rely on:
 * - every committed write takes the next revision; none is reused, none is skipped;
 * - a write is visible to `get`, `scan` and watches only once it is committed, and all of them see
 *   writes in the order of their revisions;
 * - `create` happens only if the key is free, `update` and `delete` only if the object is still at the
 *   revision the caller read: there are no lost updates under any interleaving;
 * - history reaches back to `compactedRevision`, which trails `revision` by at least HISTORY_MS_MIN and
 *   HISTORY_REVISIONS_MIN, unless somebody calls `compact` or writes more than HISTORY_CHARS_MAX in that time. After a
 *   restart it may be shorter: on a full disk the file forgets history before it refuses a write;
 * - a watch delivers every write after its start, once, in order, or ends and says why;
 * - a write that does not get through rejects with a StoreError, and then none of it is visible. Under
 *   `WriteFailed` it may still be there after a restart; under every other code it never will be.
 *
 * Callers may not rely on: a watch that outlives a reader which stopped reading, and the identity of
 * the StoredObject they get (equal revisions mean equal text).
 */
export interface ObjectStore {
  /** Of the last committed write. */
  readonly revision: number;
  /** The oldest revision whose state can still be told. */
  readonly compactedRevision: number;

  get(key: StoreKey): StoredObject | undefined;
  /** In order of namespace, then name, bytewise. Consume it before the next await. */
  scan(range: ScanRange): Iterable<StoredObject>;

  create(key: StoreKey, render: Render): Promise<CreateOutcome>;
  update(key: StoreKey, render: Render, condition: Condition): Promise<WriteOutcome>;
  /** `render` gives the last words of the object: what its DELETED event will show. */
  delete(key: StoreKey, render: Render, condition: Condition): Promise<WriteOutcome>;

  /** `wake` is called whenever `take` may have something new to say; it must not throw. */
  watch(options: StoreWatchOptions, wake: () => void): StoreWatch;
  /** Resolves once `revision` is reached; rejects with the signal's reason. */
  reach(revision: number, signal: AbortSignal): Promise<void>;
  /** Forgets what was before `revision`. */
  compact(revision: number): Promise<void>;

  /** Whether writes get through, and if not, why. Reads and watches always do. */
  readonly health: StoreHealth;
  /** Lets what is being committed finish and refuses later writes. Reads and watches go on from memory. */
  close(): Promise<void>;
}

/** Five minutes is what etcd keeps behind kube-apiserver, and ten times a client's reconnect backoff of 30 s. */
export const HISTORY_MS_MIN = 5 * 60_000;
/** A quiet store keeps at least this much, however old: a client that slept an hour can still resume. */
export const HISTORY_REVISIONS_MIN = 1_000;

/**
 * Text of history held at most, whatever the other two say: 90 writes of 2 kB a second for five minutes, or 64 of the
 * largest objects. Past it history gets shorter instead of memory larger, and a client that falls behind lists again.
 * After 300 MB of updates `mooring apiserver` has 316 MB of memory with objects of 100 kB, 367 with 5 kB (both measured
 * without HISTORY_ENTRY_CHARS, which hardly matters there) and 393 with 1 kB, of which 190 are pages of files.
 */
export const HISTORY_CHARS_MAX = 64 * 2 ** 20;
/**
 * What a write takes beside its text, in memory and as the unused rest of a page: two of 1.3 kB fill a page of 4. Without it,
 * updates of 1 kB came to 476 MB.
 */
export const HISTORY_ENTRY_CHARS = 512;

export interface StoreKey {
  /** `pods`, `leases.coordination.k8s.io`. */
  readonly resource: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
}

export interface StoredObject {
  readonly key: StoreKey;
  /** Of the write that made this version. */
  readonly revision: number;
  /** The object as JSON, exactly as it is sent. */
  readonly text: string;
}

/** Makes the text once the revision is known, because the object carries it as its resourceVersion. */
export type Render = (revision: number) => string;

export interface Condition {
  /** The revision the caller read and decided upon. */
  readonly expected: number;
}

export type CreateOutcome =
  | { readonly kind: "committed"; readonly object: StoredObject }
  | { readonly kind: "exists"; readonly object: StoredObject };

export type WriteOutcome =
  | { readonly kind: "committed"; readonly object: StoredObject }
  /** Somebody else wrote first; look again. */
  | { readonly kind: "conflict" };

export interface ScanRange {
  readonly resource: string;
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined;
  /** Absent: the latest. Before `compactedRevision` the scan throws CompactedError. */
  readonly atRevision?: number | undefined;
  /** The first position to look at, as `positionAfter` makes it. */
  readonly from?: string | undefined;
}

export interface StoreEvent {
  readonly type: "created" | "updated" | "deleted";
  /** For a deletion: its last words, with the revision of the deletion. */
  readonly object: StoredObject;
  /** What it replaced. */
  readonly previous: StoredObject | undefined;
}

export interface StoreWatchOptions {
  readonly resource: string;
  readonly namespace?: string | undefined;
  /** Events after this revision; it may lie in the future. */
  readonly afterRevision: number;
}

export interface StoreWatch {
  /** The next event, or undefined when there is none yet or the watch has ended. */
  take(): StoreEvent | undefined;
  /**
   * `expired`: the events that come next are compacted. `overflowed`: the reader was too slow.
   * Events before that point have all been taken.
   */
  readonly state: "open" | "expired" | "overflowed";
  close(): void;
}

export type StoreHealth =
  | { readonly kind: "ok" }
  /** Writes are refused for want of space; each one tries again. */
  | { readonly kind: "full"; readonly why: string }
  /** The disk has not answered for so long; writes wait. */
  | { readonly kind: "stalled"; readonly forMs: number }
  /** No write gets through before a restart. */
  | { readonly kind: "failed"; readonly why: string };

export type StoreErrorCode =
  /** No space for this write; the next may find some. */
  | "Full"
  /** The disk failed in the middle of a commit; no writes before a restart. */
  | "WriteFailed"
  /** More writes wait than the store will hold. */
  | "Overloaded"
  | "Closed"
  /** The files are damaged; the message says where. */
  | "Corrupt"
  /** The files were written by a later version. */
  | "NewerFormat"
  /** The files cannot be opened or made; the message says why. */
  | "Unusable";

/** The one error of a store. Branch on `code`; the message says what was attempted, where, and what to do. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(`${code}: ${message}`, options);
    this.code = code;
  }
}

/** The state asked for is no longer known. */
export class CompactedError extends Error {
  override readonly name = "CompactedError";
  readonly compactedRevision: number;

  constructor(revision: number, compactedRevision: number) {
    super(`revision ${revision} is compacted; history begins at ${compactedRevision}: list again`);
    this.compactedRevision = compactedRevision;
  }
}
