import { comparePlain, comparePositions, isPlain, namespacePrefix, toPosition } from "./keys.ts";
import type { StoredObject, StoreKey } from "./store.ts";

/** One version of an object in memory; `object` is undefined where it was deleted. */
interface Version {
  readonly revision: number;
  readonly object: StoredObject | undefined;
}

/** One name with its versions, the latest last. */
interface Row {
  readonly position: string;
  readonly versions: Version[];
}

/** New rows that are put into place one by one; more are cheaper to sort with all the others. */
const INSERTS_MAX = 32;

/**
 * All objects of one resource with their old versions. Rows are kept sorted in an array: inserting moves at
 * most 8 bytes an object (0.8 MB for 100,000 of them), and a scan is a walk. What came since the last scan
 * waits unsorted, so that 50,000 objects read from disk are sorted once.
 */
export class Table {
  readonly #rows: Row[] = [];
  #added: Row[] = [];
  readonly #byPosition = new Map<string, Row>();
  #compare = comparePlain;

  get(key: StoreKey): StoredObject | undefined {
    return this.#byPosition.get(toPosition(key))?.versions.at(-1)?.object;
  }

  put(key: StoreKey, revision: number, object: StoredObject | undefined): void {
    const position = toPosition(key);
    const known = this.#byPosition.get(position);
    if (known !== undefined) {
      known.versions.push({ revision, object });
      return;
    }
    const row: Row = { position, versions: [{ revision, object }] };
    this.#byPosition.set(position, row);
    this.#added.push(row);
    if (this.#compare === comparePlain && !isPlain(position)) this.#sortByBytes();
  }

  *scan(range: {
    namespace?: string | undefined;
    from?: string | undefined;
    atRevision: number;
  }): Iterable<StoredObject> {
    this.#settle();
    const prefix = range.namespace === undefined ? "" : namespacePrefix(range.namespace);
    const from = range.from !== undefined && comparePositions(range.from, prefix) > 0 ? range.from : prefix;
    for (let index = this.#lowerBound(from); index < this.#rows.length; index++) {
      const row = this.#rows[index];
      if (row === undefined || !row.position.startsWith(prefix)) return;
      const object = versionAt(row.versions, range.atRevision);
      if (object !== undefined) yield object;
    }
  }

  /** Forgets the versions of one key that nobody can ask for once history begins at `revision`. */
  trim(key: StoreKey, revision: number): void {
    const position = toPosition(key);
    const versions = this.#byPosition.get(position)?.versions;
    if (versions === undefined) return;
    while (versions.length > 1 && (versions[1]?.revision ?? Infinity) <= revision) versions.shift();
    const [only] = versions;
    if (versions.length > 1 || only === undefined || only.object !== undefined || only.revision > revision)
      return;
    this.#settle();
    this.#byPosition.delete(position);
    this.#rows.splice(this.#lowerBound(position), 1);
  }

  #settle(): void {
    if (this.#added.length <= INSERTS_MAX) {
      for (const row of this.#added) this.#rows.splice(this.#lowerBound(row.position), 0, row);
    } else {
      for (const row of this.#added) this.#rows.push(row);
      this.#rows.sort((a, b) => this.#compare(a.position, b.position));
    }
    this.#added = [];
  }

  #sortByBytes(): void {
    this.#compare = comparePositions;
    this.#rows.sort((a, b) => comparePositions(a.position, b.position));
  }

  /** Where `position` is, or would be inserted. */
  #lowerBound(position: string): number {
    const compare = this.#compare === comparePlain && isPlain(position) ? comparePlain : comparePositions;
    let [low, high] = [0, this.#rows.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(this.#rows[middle]?.position ?? "", position) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function versionAt(versions: readonly Version[], revision: number): StoredObject | undefined {
  // From the end: nearly every reader wants the latest or nearly so.
  for (let index = versions.length - 1; index >= 0; index--) {
    const version = versions[index];
    if (version !== undefined && version.revision <= revision) return version.object;
  }
  return undefined;
}
