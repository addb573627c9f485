import { comparePlain, comparePositions, isPlain, namespacePrefix, toPosition } from "./keys.ts";
import type { StoreKey } from "./store.ts";
import { KeptObject } from "./texts.ts";

/** One version of an object, or where it was deleted. */
type Version = KeptObject | { readonly revision: number };

/** One name with its latest version. Most objects have no older one, and then no array for them either. */
interface Row {
  readonly position: string;
  readonly key: StoreKey;
  latest: Version;
  /** The oldest first. */
  older: Version[] | undefined;
}

/** New rows that are put into place one by one; more are cheaper to sort with all the others. */
const INSERTS_MAX = 32;

/**
 * All objects of one resource with their old versions. Rows are kept sorted in an array: inserting moves at
 * most 8 bytes an object (0.8 MB for 100,000 of them), and a scan is a walk. What came since the last scan
 * waits unsorted, so that 50,000 objects read from disk are sorted once.
 */
export class Table {
  readonly #resource: string;
  /** Many objects share a namespace; they shall share its text too. Never more than there have been namespaces. */
  readonly #namespaces = new Map<string, string>();
  readonly #rows: Row[] = [];
  #added: Row[] = [];
  readonly #byPosition = new Map<string, Row>();
  #compare = comparePlain;

  constructor(resource: string) {
    this.#resource = resource;
  }

  get(key: StoreKey): KeptObject | undefined {
    const latest = this.#byPosition.get(toPosition(key))?.latest;
    return latest instanceof KeptObject ? latest : undefined;
  }

  /** The same key with texts that are here already: all versions of an object share theirs. */
  share(key: StoreKey): StoreKey {
    const known = this.#byPosition.get(toPosition(key))?.key;
    if (known !== undefined) return known;
    let namespace = this.#namespaces.get(key.namespace);
    if (namespace === undefined) this.#namespaces.set(key.namespace, (namespace = key.namespace));
    return { resource: this.#resource, namespace, name: key.name };
  }

  /** `version` has a key that is shared. */
  put(key: StoreKey, version: Version): void {
    const position = toPosition(key);
    const known = this.#byPosition.get(position);
    if (known !== undefined) {
      (known.older ??= []).push(known.latest);
      known.latest = version;
      return;
    }
    const row: Row = { position, key, latest: version, older: undefined };
    this.#byPosition.set(position, row);
    this.#added.push(row);
    if (this.#compare === comparePlain && !isPlain(position)) this.#sortByBytes();
  }

  *scan(range: {
    namespace?: string | undefined;
    from?: string | undefined;
    atRevision: number;
  }): Iterable<KeptObject> {
    this.#settle();
    const prefix = range.namespace === undefined ? "" : namespacePrefix(range.namespace);
    const from = range.from !== undefined && comparePositions(range.from, prefix) > 0 ? range.from : prefix;
    for (let index = this.#lowerBound(from); index < this.#rows.length; index++) {
      const row = this.#rows[index];
      if (row === undefined || !row.position.startsWith(prefix)) return;
      const version = versionAt(row, range.atRevision);
      if (version instanceof KeptObject) yield version;
    }
  }

  /** Forgets the versions of one key that nobody can ask for once history begins at `revision`; returns them. */
  trim(key: StoreKey, revision: number): readonly KeptObject[] {
    const row = this.#byPosition.get(toPosition(key));
    if (row === undefined) return [];
    const trimmed = trimOlder(row, revision);
    if (row.older === undefined && !(row.latest instanceof KeptObject) && row.latest.revision <= revision)
      this.#remove(row);
    return trimmed.filter((version) => version instanceof KeptObject);
  }

  #remove({ position }: Row): void {
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

/** A version goes when its successor is old enough to stand where history begins. */
function trimOlder(row: Row, revision: number): readonly Version[] {
  const { older, latest } = row;
  if (older === undefined) return [];
  let count = 0;
  while (count < older.length && (older[count + 1] ?? latest).revision <= revision) count++;
  const trimmed = older.splice(0, count);
  if (older.length === 0) row.older = undefined;
  return trimmed;
}

function versionAt({ latest, older = [] }: Row, revision: number): Version | undefined {
  // From the end: nearly every reader wants the latest or nearly so.
  if (latest.revision <= revision) return latest;
  return older.findLast((version) => version.revision <= revision);
}
