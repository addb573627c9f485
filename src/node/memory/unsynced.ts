import { chance, type Random } from "../../base/random.ts";
import type { Inode } from "./tree.ts";

/** A name in a directory that came, went or became another file's. */
export interface EntryChange {
  readonly directory: Inode;
  readonly name: string;
  readonly before: Inode | undefined;
  readonly after: Inode | undefined;
}

/** A rename changes two names at once: after a power loss both or none. */
interface Operation {
  readonly atMs: number;
  readonly changes: readonly EntryChange[];
}

/** The longest that ext4, xfs and their writeback keep something to themselves: dirty_expire_centisecs, xfssyncd_centisecs. */
const WRITTEN_BACK_MS = 30_000;
/** Of what a power loss meets half written. */
const TORN = 1 / 3;

/**
 * What of one filesystem has not reached its disk. The promises are those of every journaling filesystem of Linux: what
 * was fsynced stays, the directories that lead to an fsynced directory as well, a rename is whole, and the changes of one
 * directory happen in their order. Nothing is promised between two directories, nor between a file's name and its
 * content.
 */
export class Unsynced {
  readonly #nowMs: () => number;
  #operations: Operation[] = [];
  /** What is on the disk of files whose content is newer, the oldest change first. */
  readonly #contents = new Map<Inode, { readonly atMs: number; readonly bytes: Uint8Array }>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Of another filesystem on the same machine. */
  another(): Unsynced {
    return new Unsynced(this.#nowMs);
  }

  changed(changes: readonly EntryChange[]): void {
    this.#writeBack();
    this.#operations.push({ atMs: this.#nowMs(), changes });
  }

  /** Called before its bytes are replaced. */
  willWrite(file: Inode): void {
    this.#writeBack();
    if (!this.#contents.has(file)) this.#contents.set(file, { atMs: this.#nowMs(), bytes: file.bytes });
  }

  /** fsync(2) of a file: its content; its name is in its directory. */
  syncFile(file: Inode): void {
    this.#contents.delete(file);
  }

  /** fsync(2) of a directory. */
  syncDirectory(directory: Inode): void {
    // Backwards, because an operation takes those before it in its directories along, and those that made these.
    const wanted = new Set([directory]);
    const kept = this.#operations.toReversed().filter(({ changes }) => {
      const isWanted = changes.some(
        (change) => wanted.has(change.directory) || (change.after !== undefined && wanted.has(change.after)),
      );
      if (isWanted) for (const change of changes) wanted.add(change.directory);
      return !isWanted;
    });
    this.#operations = kept.reverse();
  }

  /** syncfs(2), an unmount, a freeze. */
  syncAll(): void {
    this.#operations = [];
    this.#contents.clear();
  }

  /** A copy of what is on the disk. Bytes are replaced and never changed in place, so that copies share them. */
  durable(root: Inode): Inode {
    this.#writeBack();
    const entries = new Map<Inode, Map<string, Inode>>();
    for (const { changes } of this.#operations.toReversed())
      for (const { directory, name, before } of changes) {
        const children = entries.get(directory) ?? new Map(directory.children);
        entries.set(directory, children);
        setOrDelete(children, name, before);
      }
    const copy = (inode: Inode): Inode => {
      const children = new Map<string, Inode>();
      for (const [name, child] of entries.get(inode) ?? inode.children) children.set(name, copy(child));
      return { ...inode, children, bytes: this.#contents.get(inode)?.bytes ?? inode.bytes };
    };
    return copy(root);
  }

  /**
   * The power fails. Of what is not on the disk some is there afterwards and some is not, as `random` says; without one
   * nothing of it is. `of` bounds it to some directories and files. Answers the changes that never happened.
   */
  lose({ random, of: isThere }: Loss): readonly EntryChange[] {
    this.#writeBack();
    const of = isThere === undefined ? () => true : this.#orWas(isThere);
    const lost = this.#lostOperations(random, of).flatMap(({ changes }) => changes);
    for (const { directory, name, before } of lost.toReversed())
      setOrDelete(directory.children, name, before);
    for (const [file, { bytes }] of [...this.#contents])
      if (of(file)) {
        this.#contents.delete(file);
        file.bytes = afterLoss(bytes, file.bytes, random);
      }
    return lost;
  }

  /** Also what was removed from there. */
  #orWas(isThere: (inode: Inode) => boolean): (inode: Inode) => boolean {
    const removed = new Set<Inode>();
    const of = (inode: Inode) => isThere(inode) || removed.has(inode);
    for (const { changes } of this.#operations.toReversed())
      for (const { directory, before, after } of changes)
        if (of(directory)) for (const one of [before, after]) if (one !== undefined) removed.add(one);
    return of;
  }

  /** A directory that lost an operation has none that came later. */
  #lostOperations(random: Random | undefined, of: (inode: Inode) => boolean): readonly Operation[] {
    const cut = new Set<Inode>();
    const lost: Operation[] = [];
    const left: Operation[] = [];
    for (const operation of this.#operations) {
      const directories = operation.changes.map(({ directory }) => directory);
      const isCut = directories.some((directory) => cut.has(directory));
      if (!isCut && !directories.some(of)) left.push(operation);
      else if (isCut || random === undefined || chance(random, 0.5)) {
        lost.push(operation);
        for (const directory of directories) cut.add(directory);
      }
    }
    this.#operations = left;
    return lost;
  }

  /** What the kernel has done by itself since it was last asked. */
  #writeBack(): void {
    const untilMs = this.#nowMs() - WRITTEN_BACK_MS;
    let written = 0;
    while ((this.#operations[written]?.atMs ?? Infinity) <= untilMs) written++;
    if (written > 0) this.#operations.splice(0, written);
    for (const [file, { atMs }] of this.#contents) {
      if (atMs > untilMs) break;
      this.#contents.delete(file);
    }
  }
}

export interface Loss {
  readonly random: Random | undefined;
  readonly of?: (inode: Inode) => boolean;
}

/** Lost, kept, or cut somewhere: what was appended to stays, what was written over may be empty. */
export function afterLoss(before: Uint8Array, now: Uint8Array, random: Random | undefined): Uint8Array {
  if (random === undefined) return before;
  if (!chance(random, TORN)) return chance(random, 0.5) ? before : now;
  const isAppended = before.every((byte, at) => now[at] === byte);
  const keptBytes = isAppended ? before.length : 0;
  return now.slice(0, keptBytes + random.int(now.length - keptBytes + 1));
}

function setOrDelete(children: Map<string, Inode>, name: string, inode: Inode | undefined): void {
  if (inode === undefined) children.delete(name);
  else children.set(name, inode);
}
