import type { ApiObject } from "../objects.ts";
import { parseStored } from "../objects.ts";
import type { ObjectStore, StoreKey, StoreWatch } from "../store/store.ts";

/** What an index keeps of one resource. Calls must not throw, whatever the object looks like. */
export interface IndexTarget {
  put(key: StoreKey, object: ApiObject): void;
  remove(key: StoreKey): void;
  clear(): void;
}

/** Keeps an index in step with one resource of the store. */
export interface IndexFeed {
  /** After this the index shows every write committed so far: what a request made, the next one honours. */
  sync(): void;
}

/**
 * Half of the 1,000 events that a store's watch keeps for a slow reader: a quiet index catches up in
 * between, so that it has to be built from a scan only once.
 */
const BEHIND_MAX = 500;

export function createIndexFeed(store: ObjectStore, resource: string, target: IndexTarget): IndexFeed {
  let watch: StoreWatch | undefined;
  let behind = 0;

  function sync(): void {
    behind = 0;
    if (watch === undefined || !drain(watch)) watch = rebuild();
  }

  /** False once the watch has ended: events were lost, and only a scan can tell what is true. */
  function drain(open: StoreWatch): boolean {
    for (let event = open.take(); event !== undefined; event = open.take()) {
      if (event.type === "deleted") target.remove(event.object.key);
      else target.put(event.object.key, parseStored(event.object));
    }
    if (open.state === "open") return true;
    open.close();
    return false;
  }

  function rebuild(): StoreWatch {
    target.clear();
    for (const stored of store.scan({ resource })) target.put(stored.key, parseStored(stored));
    const next = store.watch({ resource, afterRevision: store.revision }, () => {
      if (++behind >= BEHIND_MAX) sync();
    });
    // A watch keeps events for its reader from the first time it was asked and had none.
    drain(next);
    return next;
  }

  return { sync };
}
