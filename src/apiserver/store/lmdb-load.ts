import type { Clock } from "../../base/clock.ts";
import { readRecords } from "./lmdb-file.ts";
import type { PageSource } from "./lmdb-source.ts";
import { damaged, decodeRecord, type Head, type WriteRecord } from "./lmdb-records.ts";
import type { TreeRecord } from "./lmdb-tree.ts";
import { CommittedState, type StateOptions } from "./state.ts";
import type { StoredObject, StoreKey } from "./store.ts";

/**
 * The state as of the last commit, from the records of the file. Checksums say that each record is what was
 * written; here it is checked that none is missing: revisions follow each other from where history
 * begins, and each write names the version it replaced.
 */
export function loadState(source: PageSource, clock: Clock, options: StateOptions): CommittedState {
  return loadRecords({ path: source.path, records: readRecords(source) }, clock, options);
}

/** The same from records that somebody else read, in the order of their keys; `path` is named in messages. */
export function loadRecords(
  { path, records }: { readonly path: string; readonly records: Iterable<TreeRecord> },
  clock: Clock,
  options: StateOptions,
): CommittedState {
  const loader = new Loader(path, clock, options);
  for (const [key, value] of records) {
    const record = decodeRecord(key, value, path);
    if (record.kind === "head") loader.begin(record.head);
    else loader.add(record.write);
  }
  return loader.state;
}

/** Records between two turns of the event loop: about 1 ms of work. */
const CHECK_SLICE = 128;

/**
 * Reads and checks all of a file without keeping any of it; returns the revision it stands at. In slices, because
 * requests are served meanwhile.
 */
export async function checkRecords(source: PageSource, nextTurn: () => Promise<void>): Promise<number> {
  let [revision, records] = [0, 0];
  for (const [key, value] of readRecords(source)) {
    const record = decodeRecord(key, value, source.path);
    const found = record.kind === "head" ? record.head.compactedRevision : record.write.object.revision;
    revision = Math.max(revision, found);
    if (++records % CHECK_SLICE === 0) await nextTurn();
  }
  if (revision === 0) throw damaged(source.path, "the head record is missing");
  return revision;
}

class Loader {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #options: StateOptions;
  /** Many objects share a resource and a namespace; they shall share its text too. */
  readonly #texts = new Map<string, string>();
  #state: CommittedState | undefined;

  constructor(path: string, clock: Clock, options: StateOptions) {
    this.#path = path;
    this.#clock = clock;
    this.#options = options;
  }

  get state(): CommittedState {
    if (this.#state === undefined) throw damaged(this.#path, "the head record is missing");
    return this.#state;
  }

  begin({ compactedRevision }: Head): void {
    this.#state = new CommittedState(this.#clock, this.#options, compactedRevision);
  }

  add(write: WriteRecord): void {
    const { state } = this;
    const object = { ...write.object, key: this.#share(write.object.key) };
    if (object.revision <= state.compactedRevision) this.#addObject(write, object);
    else this.#addEvent(write, object);
  }

  /** From before the history: what is left of that are the versions that objects had where it begins. */
  #addObject({ type }: WriteRecord, object: StoredObject): void {
    if (type === "deleted" || this.state.get(object.key) !== undefined) {
      throw damaged(this.#path, `revision ${object.revision} should have been compacted with its successor`);
    }
    this.state.seed(object);
  }

  #addEvent({ type, previousRevision, committedAtMs }: WriteRecord, object: StoredObject): void {
    const { state } = this;
    const previous = state.get(object.key);
    if (object.revision !== state.revision + 1) {
      throw damaged(this.#path, `revision ${state.revision + 1} is missing before ${object.revision}`);
    }
    if ((previous?.revision ?? 0) !== previousRevision) {
      const found = previous === undefined ? "it is not there" : `the latest is ${previous.revision}`;
      throw damaged(this.#path, `revision ${object.revision} replaced ${previousRevision}, and ${found}`);
    }
    // A wall clock that was set back must not make history look old: then it is kept longer.
    const ageMs = Math.max(0, this.#clock.wall().getTime() - committedAtMs);
    state.apply({ type, object, previous }, this.#clock.now() - ageMs);
  }

  #share({ resource, namespace, name }: StoreKey): StoreKey {
    return { resource: this.#shared(resource), namespace: this.#shared(namespace), name };
  }

  #shared(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#texts.set(text, text);
    return text;
  }
}
