import { toPosition } from "./keys.ts";
import { decodeRecord, guessWrite, revisionOf, type WriteRecord } from "./lmdb-records.ts";
import { salvagePages, type SalvagedNode } from "./lmdb-salvage-pages.ts";
import type { PageSource } from "./lmdb-source.ts";
import type { StoredObject, StoreKey } from "./store.ts";

/** What became of a damaged store. Every object in it is as it was last written, or says that it may not be. */
export interface Salvaged {
  /** The last revision that there is any trace of. */
  readonly revision: number;
  /** In the order of their revisions. */
  readonly objects: readonly StoredObject[];
  /** Objects whose present version is damaged. */
  readonly lost: readonly LostObject[];
  /** Writes that are gone without a trace of what they were about. */
  readonly unmatched: readonly number[];
  /** Objects in `objects` that one of those writes may have changed or deleted: they are older than it. */
  readonly outdated: readonly StoreKey[];
  /** Objects of pages that may be from before: whether they were there at the end cannot be told. Not in `objects`. */
  readonly uncertain: readonly StoreKey[];
  /** Records that are gone and of which nothing is known but that they were there. */
  readonly missing: number;
  /** Where in the file something could not be read. */
  readonly damagedAt: readonly number[];
}

export interface LostObject {
  readonly revision: number;
  /** As far as it can be read. */
  readonly key: StoreKey | undefined;
}

/**
 * Everything that can be trusted in a damaged file. A record is the write of its revision and never changes, so that one
 * with a correct checksum is true wherever it is found, also on a page that is free by now. What has to be known
 * beside that is whether it is still the latest of its object, and for that no later write may be missing.
 */
export function salvage(source: PageSource): Salvaged {
  const pages = salvagePages(source);
  const { current, unplaced, damagedAt, isEndKnown } = pages;
  const found = sort(current, source.path);
  const spare = sort(unplaced, source.path);
  const compacted = found.compacted ?? spare.compacted;
  const copies = new Map([...spare.writes].filter(([, write]) => write !== AMBIGUOUS));
  for (const revision of found.damaged.keys()) adopt(found, copies.get(revision));
  // In the history every revision is there, so one that is not on a page of the tree was torn from it.
  const begin = compacted ?? Infinity;
  for (const [revision, write] of copies) if (revision > begin) adopt(found, write);
  const revision = lastRevision(found, compacted ?? 1, pages.missing ?? pages.recordsMax);
  const gone = [...found.damaged.keys()];
  for (let missing = begin + 1; missing < revision; missing++)
    if (!found.writes.has(missing) && !found.damaged.has(missing)) gone.push(missing);
  const isPastKnown = isEndKnown && compacted !== undefined;
  const state = new Replay(
    found,
    gone.sort((a, b) => a - b),
  );
  const replayed = state.run({ isPastKnown });
  const uncertain = uncertainOf(copies, found, state);
  return { revision, ...replayed, uncertain, missing: pages.missing ?? 0, damagedAt };
}

/**
 * The last revision of which there is a trace. Revisions have no gaps, so that after the last sound one there are at most
 * as many as records are damaged or missing. A key that says more is damaged itself, and gets a number that says so.
 */
function lastRevision({ writes, damaged }: Sorted, compacted: number, missing: number): number {
  const highest = (least: number, revisions: Iterable<number>) => {
    let found = least;
    for (const revision of revisions) if (revision > found) found = revision;
    return found;
  };
  const sound = highest(Math.max(1, compacted), writes.keys());
  const end = sound + damaged.size + missing;
  let unknown = highest(UNKNOWN, damaged.keys());
  for (const [revision, guess] of [...damaged]) {
    if (revision <= end || revision >= UNKNOWN) continue;
    damaged.delete(revision);
    damaged.set(++unknown, guess);
  }
  return highest(
    sound,
    [...damaged.keys()].filter((revision) => revision <= end),
  );
}

/** Records whose key cannot be read are numbered from here on: later than all, so that what they name is lost. */
const UNKNOWN = 2 ** 52;
const AMBIGUOUS = Symbol("two different writes of one revision");

interface Sorted {
  readonly writes: Map<number, WriteRecord | typeof AMBIGUOUS>;
  /** By revision; what can be guessed of the write. */
  readonly damaged: Map<number, WriteRecord | undefined>;
  readonly compacted: number | undefined;
}

function sort(nodes: readonly SalvagedNode[], path: string): Sorted {
  const sorted: { -readonly [Name in keyof Sorted]: Sorted[Name] } = {
    writes: new Map(),
    damaged: new Map(),
    compacted: undefined,
  };
  for (const { key, value } of nodes) {
    try {
      const record = decodeRecord(key, value ?? Buffer.alloc(0), path);
      if (record.kind === "head")
        sorted.compacted = Math.max(sorted.compacted ?? 0, record.head.compactedRevision);
      else add(sorted.writes, record.write);
    } catch {
      const revision = revisionOf(key) ?? UNKNOWN;
      sorted.damaged.set(
        revision < UNKNOWN ? revision : UNKNOWN + sorted.damaged.size,
        value && guessWrite(key, value),
      );
    }
  }
  for (const revision of sorted.writes.keys()) sorted.damaged.delete(revision);
  return sorted;
}

/** A commit that failed leaves writes behind whose revisions are given again. */
function add(writes: Sorted["writes"], write: WriteRecord): void {
  const { revision } = write.object;
  const known = writes.get(revision);
  const isSame = known === undefined || JSON.stringify(known) === JSON.stringify(write);
  writes.set(revision, isSame ? write : AMBIGUOUS);
}

function adopt({ writes, damaged }: Sorted, write: WriteRecord | typeof AMBIGUOUS | undefined): void {
  if (write === undefined || write === AMBIGUOUS || writes.has(write.object.revision)) return;
  writes.set(write.object.revision, write);
  damaged.delete(write.object.revision);
}

/** Writes in their order, with gaps. */
class Replay {
  readonly #writes: readonly WriteRecord[];
  readonly #guesses: Sorted["damaged"];
  readonly #gone: readonly number[];
  readonly #superseded: ReadonlySet<number>;
  readonly #objects = new Map<string, StoredObject>();
  readonly #idAt = new Map<number, string>();
  readonly #lost = new Map<string, LostObject>();
  readonly #unmatched: number[] = [];

  constructor({ writes, damaged }: Sorted, gone: readonly number[]) {
    this.#writes = [...writes.values()]
      .filter((write) => write !== AMBIGUOUS)
      .sort((a, b) => a.object.revision - b.object.revision);
    this.#guesses = damaged;
    this.#gone = gone.filter((revision) => !writes.has(revision));
    this.#superseded = new Set(this.#writes.map(({ previousRevision }) => previousRevision));
  }

  /** `isPastKnown` says whether every write there was is here or among those that are gone. */
  run({
    isPastKnown,
  }: {
    readonly isPastKnown: boolean;
  }): Pick<Salvaged, "objects" | "lost" | "unmatched" | "outdated"> {
    const gone = [...this.#gone];
    for (const write of this.#writes) {
      while ((gone[0] ?? Infinity) < write.object.revision) this.#lose(gone.shift() ?? 0);
      this.#apply(write);
    }
    for (const revision of gone) this.#lose(revision);
    const last = isPastKnown ? (this.#unmatched.at(-1) ?? 0) : Infinity;
    const objects = [...this.#objects.values()].sort((a, b) => a.revision - b.revision);
    const outdated = objects.filter(({ revision }) => revision < last).map(({ key }) => key);
    return { objects, lost: [...this.#lost.values()], unmatched: this.#unmatched, outdated };
  }

  has(key: StoreKey): boolean {
    return this.#objects.has(idOf(key)) || this.#lost.has(idOf(key));
  }

  #apply({ type, object }: WriteRecord): void {
    const id = idOf(object.key);
    this.#lost.delete(id);
    if (type === "deleted") this.#objects.delete(id);
    else {
      this.#objects.set(id, object);
      this.#idAt.set(object.revision, id);
    }
  }

  /** The object whose present version is of this revision. */
  #at(revision: number): StoredObject | undefined {
    const object = this.#objects.get(this.#idAt.get(revision) ?? "");
    return object?.revision === revision ? object : undefined;
  }

  /**
   * A write that cannot be read. If its names and the version it replaced agree on an object, that one is lost. If only one
   * of the two says something, or they disagree, whatever either points at is lost: one of them is the right one.
   */
  #lose(revision: number): void {
    if (this.#superseded.has(revision)) return;
    const guess = this.#guesses.get(revision);
    const replaced = guess && this.#at(guess.previousRevision);
    const named = guess && this.#objects.get(idOf(guess.object.key));
    for (const { key } of [replaced, named].filter((object) => object !== undefined)) {
      this.#objects.delete(idOf(key));
      this.#lost.set(idOf(key), { revision, key });
    }
    if (replaced || named) return;
    if (guess) this.#lost.set(idOf(guess.object.key), { revision, key: guess.object.key });
    const isNew = guess?.type === "created" && guess.previousRevision === 0;
    if (!isNew) this.#unmatched.push(revision);
  }
}

function uncertainOf(
  copies: Sorted["writes"],
  { writes, damaged, compacted }: Sorted,
  state: Replay,
): readonly StoreKey[] {
  // Where the tree could be read, what is not in it is not there.
  if (damaged.size === 0 && compacted !== undefined) return [];
  const keys = new Map<string, StoreKey>();
  for (const [revision, write] of copies) {
    if (write === AMBIGUOUS || writes.has(revision) || write.type === "deleted") continue;
    if (!state.has(write.object.key)) keys.set(idOf(write.object.key), write.object.key);
  }
  return [...keys.values()];
}

function idOf(key: StoreKey): string {
  return `${key.resource}\0${toPosition(key)}`;
}
