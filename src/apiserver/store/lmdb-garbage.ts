import { HEAD_KEY, encodeHead, writeKey } from "./lmdb-records.ts";
import type { Changes } from "./lmdb-environment.ts";
import type { StoreEvent } from "./store.ts";

/**
 * Records that nobody can ask for any more and that are still in the file. Memory forgets at once; the file follows in
 * slices that ride along with the commits of writes, so that compaction costs no sync of its own. A process killed in
 * between comes back with a history that reaches back a little further than it had told.
 *
 * On a full disk the file is ahead instead: it forgets what memory still tells, and a restart begins with less history.
 */
export class Garbage {
  /** Forgotten revisions that follow each other, from `#head` on, each with the records that became useless with it. */
  #entries: (readonly [revision: number, useless: readonly number[]])[] = [];
  #head = 0;
  /** Where history begins in the file. */
  #compacted: number;
  /** The last revision that was added. */
  #knownUpTo: number;

  constructor(compactedRevision: number) {
    this.#compacted = compactedRevision;
    this.#knownUpTo = compactedRevision;
  }

  get knownUpTo(): number {
    return this.#knownUpTo;
  }

  get compactedRevision(): number {
    return this.#compacted;
  }

  get size(): number {
    return this.#entries.length - this.#head;
  }

  /**
   * A forgotten write takes the version it replaced along; a deletion leaves nothing of itself either. In the order of
   * their revisions; those that are known are passed over.
   */
  add(forgotten: Iterable<StoreEvent>): void {
    for (const { type, object, previous } of forgotten) {
      if (object.revision <= this.#knownUpTo) continue;
      this.#knownUpTo = object.revision;
      const useless = previous === undefined ? [] : [previous.revision];
      if (type === "deleted") useless.push(object.revision);
      this.#entries.push([object.revision, useless]);
    }
  }

  /** What to commit for the oldest `count` of them; `taken` once that is on disk, and not before. */
  slice(count: number): { readonly changes: Changes; readonly taken: () => void } {
    const entries = this.#entries.slice(this.#head, this.#head + count);
    const last = entries.at(-1);
    if (last === undefined) return { changes: { puts: [], removes: [] }, taken: () => undefined };
    const [compactedRevision] = last;
    const changes = {
      puts: [{ key: HEAD_KEY, value: encodeHead({ compactedRevision }) }],
      removes: entries.flatMap(([, useless]) => useless.map(writeKey)),
    };
    return { changes, taken: () => this.#drop(entries.length, compactedRevision) };
  }

  /** The file was written without any history up to here. */
  skipTo(revision: number): void {
    this.#entries = [];
    this.#head = 0;
    this.#compacted = revision;
    this.#knownUpTo = revision;
  }

  #drop(count: number, compactedRevision: number): void {
    this.#head += count;
    this.#compacted = compactedRevision;
    if (this.#head < 1_024 && this.#head < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#head);
    this.#head = 0;
  }
}
