import type { ObjectStore, StoredObject } from "../apiserver/store/store.ts";

/** One write that the store has carried out. */
export interface Commit {
  readonly type: "created" | "updated" | "deleted";
  /** Of a deletion: its last words, with the revision of the deletion. */
  readonly object: StoredObject;
}

/** The store, with a witness who hears of each write before whoever asked for it does. */
export function tellCommits(store: ObjectStore, tell: (commit: Commit) => void): ObjectStore {
  function told<T extends { readonly kind: string; readonly object?: StoredObject }>(
    type: Commit["type"],
    outcome: Promise<T>,
  ): Promise<T> {
    const hear = ({ kind, object }: T) => {
      if (kind === "committed" && object !== undefined) tell({ type, object });
    };
    outcome.then(hear, () => undefined);
    return outcome;
  }

  return {
    get revision() {
      return store.revision;
    },
    get compactedRevision() {
      return store.compactedRevision;
    },
    get health() {
      return store.health;
    },
    get: (key) => store.get(key),
    scan: (range) => store.scan(range),
    create: (key, render) => told("created", store.create(key, render)),
    update: (key, render, condition) => told("updated", store.update(key, render, condition)),
    delete: (key, render, condition) => told("deleted", store.delete(key, render, condition)),
    watch: (options, wake) => store.watch(options, wake),
    reach: (revision, signal) => store.reach(revision, signal),
    compact: (revision) => store.compact(revision),
    close: () => store.close(),
  };
}
