import type { Informer } from "../kube/informer/informer.ts";
import { compareVersions, keyOf, type KubeObject, type ObjectKey } from "../kube/object.ts";

/**
 * A cache, and what this process wrote that the cache has not seen yet. Deciding from the cache alone would repeat every
 * write until the watch has brought it back.
 *
 * Bound: one object for each write whose event is still on its way.
 */
export interface Latest<T extends KubeObject> {
  get(key: ObjectKey): T | undefined;
  /** The newer of what is given, from an index of the cache, and what was written. */
  newer(object: T): T;
  /** Remembers the answer to a write. */
  written(object: T): void;
}

export function createLatest<T extends KubeObject>(informer: Informer<T>): Latest<T> {
  const own = new Map<ObjectKey, T>();
  informer.addHandler(({ kind, key, object }) => {
    const mine = own.get(key);
    if (mine === undefined) return;
    if (kind === "deleted" || !isNewer(mine, object)) own.delete(key);
  });

  function newer(object: T): T {
    const mine = own.get(keyOf(object));
    return mine !== undefined && isNewer(mine, object) ? mine : object;
  }

  return {
    get(key) {
      const cached = informer.get(key);
      return cached === undefined ? undefined : newer(cached);
    },
    newer,
    written(object) {
      const cached = informer.get(keyOf(object));
      if (cached !== undefined && isNewer(object, cached)) own.set(keyOf(object), object);
    },
  };
}

/** Of one and the same object; another of that name is another. */
function isNewer(object: KubeObject, than: KubeObject): boolean {
  if (object.metadata.uid !== than.metadata.uid) return false;
  const order = compareVersions(object.metadata.resourceVersion ?? "", than.metadata.resourceVersion ?? "");
  return order !== undefined && order > 0;
}
