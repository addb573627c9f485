import type { Inode, Mounted } from "../node/memory/tree.ts";
import { Copies } from "./copies.ts";
import { diskOf, type StoredVolume } from "./storage.ts";

/** Where a workload writes: a file of a filesystem, or a block of a raw device. */
export interface Journal {
  read(): string;
  append(text: string): void;
}

/** A block of a raw device by its number, which is not among those that tell a filesystem. */
const BLOCK = "7";
const FILE = "journal";

/** Of what a container has by this mount. */
export function journalOf(mount: Mounted, newFile: () => Inode): Journal {
  const { root } = mount;
  if (root.device !== undefined) {
    const blocks = () => diskOf(mount)?.blocks;
    const read = () => blocks()?.get(BLOCK) ?? "";
    return { read, append: (text) => void blocks()?.set(BLOCK, read() + text) };
  }
  return {
    read: () => Buffer.from(root.children.get(FILE)?.bytes ?? []).toString("utf8"),
    append(text) {
      const file = root.children.get(FILE) ?? newFile();
      root.children.set(FILE, file);
      file.bytes = Buffer.concat([file.bytes, Buffer.from(text)]);
    },
  };
}

export interface Writer {
  readonly node: string;
  readonly podUid: string;
}

/**
 * What workloads wrote into volumes and were told is on the disk. Whatever happens in between, the next one that opens the
 * volume finds exactly that: all of it, and nothing of another volume.
 */
export class VolumeData {
  readonly copies = new Copies((handle) => this.#linesOf(handle));
  readonly #acknowledged = new Map<string, string[]>();
  readonly #onWrite = new Set<(volume: StoredVolume, writer: Writer) => void>();
  #writes = 0;

  /** Told of every write that reached the disk. */
  onWrite(listener: (volume: StoredVolume, writer: Writer) => void): void {
    this.#onWrite.add(listener);
  }

  get writes(): number {
    return this.#writes;
  }

  /** One line, written and synced. */
  write(volume: StoredVolume, journal: Journal, writer: Writer): void {
    const line = `${volume.handle} ${++this.#writes} ${writer.node} ${writer.podUid}`;
    journal.append(`${line}\n`);
    this.#linesOf(volume.handle).push(line);
    for (const listener of this.#onWrite) listener(volume, writer);
  }

  /** What is wrong with the content of a volume; undefined where it is what was acknowledged. */
  problem(volume: StoredVolume, journal: Journal): string | undefined {
    const found = journal.read().split("\n").slice(0, -1);
    const miscopied = this.copies.open(volume.handle, found);
    if (miscopied !== undefined) return miscopied;
    const wanted = this.#linesOf(volume.handle);
    const foreign = found.find((line, at) => line !== wanted[at] && !line.startsWith(`${volume.handle} `));
    if (foreign !== undefined) return `${volume.handle} holds a byte of another volume: ${foreign}`;
    const lost = wanted.findIndex((line, at) => found[at] !== line);
    if (lost >= 0)
      return `${volume.handle} lost ${wanted.length - lost} of ${wanted.length} acknowledged writes, the first: ${wanted[lost]}`;
    return undefined;
  }

  forget(handle: string): void {
    this.#acknowledged.delete(handle);
    this.copies.forget(handle);
  }

  #linesOf(handle: string): string[] {
    const lines = this.#acknowledged.get(handle) ?? [];
    this.#acknowledged.set(handle, lines);
    return lines;
  }
}
