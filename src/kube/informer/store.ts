import { compareVersions, keyOf, type KubeObject, type ObjectKey } from "../object.ts";
import type { WatchEvent } from "./watch.ts";

/** What a handler is told. The closed union of everything that can happen to a cached object. */
export type Delta<T extends KubeObject> =
  | { readonly kind: "added"; readonly key: ObjectKey; readonly object: T }
  /** `old === object` when it is told again without a change (resync). */
  | { readonly kind: "updated"; readonly key: ObjectKey; readonly object: T; readonly old: T }
  | {
      readonly kind: "deleted";
      readonly key: ObjectKey;
      /** The last state we know. */
      readonly object: T;
      /** True where a relist found it missing: what happened between `object` and its end was not seen. */
      readonly tombstone: boolean;
    };

/** How to find objects by something other than their key: an object may have any number of values. */
export type IndexFunction<T> = (object: T) => readonly string[];

/**
 * Deletions remembered so that an older event of the same object, sent again or late, does not bring it
 * back. Only events repeated after a resume (see RESUME_OVERLAP) need it, so thousands are plenty.
 */
const TOMBSTONES_MAX = 4_096;

/**
 * The objects of one kind, as the events told so far make them. No clock, no network: the same calls give
 * the same deltas. For every key the deltas alternate added, updated*, deleted; whoever adds them up has
 * exactly the store.
 *
 * Events may come twice or in a wrong order (a resume repeats some; a broken server does worse): per object
 * only a newer resourceVersion changes anything.
 */
export class ObjectStore<T extends KubeObject> {
  readonly #indexes = new Map<string, Index<T>>();
  readonly #tombstones = new Map<ObjectKey, string>();
  #objects = new Map<ObjectKey, T>();

  constructor(indexes: Readonly<Record<string, IndexFunction<T>>> = {}) {
    for (const [name, valuesOf] of Object.entries(indexes)) this.#indexes.set(name, new Index(valuesOf));
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: ObjectKey): T | undefined {
    return this.#objects.get(key);
  }

  objects(): IterableIterator<T> {
    return this.#objects.values();
  }

  entries(): IterableIterator<[ObjectKey, T]> {
    return this.#objects.entries();
  }

  /** Throws on an index that was never declared: a typing mistake must not look like "none found". */
  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name);
    if (index === undefined)
      throw new RangeError(`index ${name}: not one of ${[...this.#indexes.keys()].join(", ")}`);
    const found: T[] = [];
    for (const key of index.keys(value)) {
      const object = this.#objects.get(key);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  /** One event of a watch. No deltas if it tells nothing new; two if one object took another's name. */
  apply(event: WatchEvent<T>): readonly Delta<T>[] {
    const key = keyOf(event.object);
    if (this.#isStale(key, event)) return [];
    if (event.type === "DELETED") {
      this.#remember(key, event.object.metadata.resourceVersion);
      const known = this.#objects.get(key);
      return known === undefined ? [] : [this.#remove(key, { last: event.object, tombstone: false })];
    }
    return this.#put(key, event.object);
  }

  /** Begins to take in a complete list; nothing changes until `commit`. */
  beginReplace(): Replacement<T> {
    const next = new Map<ObjectKey, T>();
    return {
      offer: (object) => {
        const key = keyOf(object);
        if (isOlder(object, next.get(key))) return;
        const known = this.#objects.get(key);
        // The very object we have: keeping ours lets the new one go, and memory does not double.
        const same = known !== undefined && sameVersion(known, object);
        next.set(key, same ? known : object);
      },
      retract: (object) => {
        const key = keyOf(object);
        if (!isOlder(object, next.get(key))) next.delete(key);
      },
      commit: () => this.#replaceWith(next),
    };
  }

  /**
   * A list is the truth even where its versions are older than ours: a cluster restored from a backup
   * counts from where the backup was taken.
   */
  #replaceWith(next: ReadonlyMap<ObjectKey, T>): readonly Delta<T>[] {
    this.#tombstones.clear();
    const deltas: Delta<T>[] = [];
    for (const [key, object] of this.#objects) {
      if (!next.has(key)) deltas.push(this.#remove(key, { last: object, tombstone: true }));
    }
    for (const [key, object] of next) {
      if (this.#objects.get(key) !== object) deltas.push(...this.#put(key, object));
    }
    return deltas;
  }

  #isStale(key: ObjectKey, event: WatchEvent<T>): boolean {
    const version = event.object.metadata.resourceVersion ?? "";
    const knownVersion = this.#objects.get(key)?.metadata.resourceVersion ?? this.#tombstones.get(key);
    if (knownVersion === undefined) return false;
    const order = compareVersions(version, knownVersion);
    if (order === undefined) return false;
    // A deletion carries the revision of the delete, but some servers leave it at the object's last one.
    return order < 0 || (order === 0 && event.type !== "DELETED");
  }

  #put(key: ObjectKey, object: T): Delta<T>[] {
    const old = this.#objects.get(key);
    const replaced = old !== undefined && old.metadata.uid !== object.metadata.uid;
    // Same name, another uid: the old one is gone and nobody told us. Handlers must see it go.
    const gone = replaced ? [this.#remove(key, { last: old, tombstone: true })] : [];
    const previous = replaced ? undefined : old;
    this.#objects.set(key, object);
    for (const index of this.#indexes.values()) index.move(key, previous, object);
    return previous === undefined
      ? [...gone, { kind: "added", key, object }]
      : [...gone, { kind: "updated", key, object, old: previous }];
  }

  #remove(key: ObjectKey, { last, tombstone }: { last: T; tombstone: boolean }): Delta<T> {
    const known = this.#objects.get(key);
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) index.move(key, known, undefined);
    return { kind: "deleted", key, object: last, tombstone };
  }

  #remember(key: ObjectKey, version: string | undefined): void {
    this.#tombstones.delete(key);
    this.#tombstones.set(key, version ?? "");
    if (this.#tombstones.size <= TOMBSTONES_MAX) return;
    const oldest = this.#tombstones.keys().next();
    if (!oldest.done) this.#tombstones.delete(oldest.value);
  }
}

export interface Replacement<T extends KubeObject> {
  offer(object: T): void;
  /** The object was deleted while the list was coming. */
  retract(object: T): void;
  commit(): readonly Delta<T>[];
}

function sameVersion(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.resourceVersion === b.metadata.resourceVersion;
}

function isOlder(object: KubeObject, than: KubeObject | undefined): boolean {
  if (than === undefined) return false;
  const order = compareVersions(object.metadata.resourceVersion ?? "", than.metadata.resourceVersion ?? "");
  return order !== undefined && order < 0;
}

/** Most values have one key, which is then kept bare: a set for each of 1,000,000 pods would take 250 MB. */
class Index<T> {
  readonly #valuesOf: IndexFunction<T>;
  readonly #keysByValue = new Map<string, ObjectKey | Set<ObjectKey>>();

  constructor(valuesOf: IndexFunction<T>) {
    this.#valuesOf = valuesOf;
  }

  keys(value: string): Iterable<ObjectKey> {
    const keys = this.#keysByValue.get(value) ?? [];
    return typeof keys === "string" ? [keys] : keys;
  }

  move(key: ObjectKey, from: T | undefined, to: T | undefined): void {
    const before = from === undefined ? [] : this.#valuesOf(from);
    const after = to === undefined ? [] : this.#valuesOf(to);
    for (const value of before) if (!after.includes(value)) this.#drop(value, key);
    for (const value of after) this.#add(value, key);
  }

  #add(value: string, key: ObjectKey): void {
    const keys = this.#keysByValue.get(value);
    if (keys === undefined) this.#keysByValue.set(value, key);
    else if (typeof keys !== "string") keys.add(key);
    else if (keys !== key) this.#keysByValue.set(value, new Set([keys, key]));
  }

  #drop(value: string, key: ObjectKey): void {
    const keys = this.#keysByValue.get(value);
    if (keys === key) this.#keysByValue.delete(value);
    if (typeof keys === "string" || !keys?.delete(key)) return;
    if (keys.size === 0) this.#keysByValue.delete(value);
  }
}
