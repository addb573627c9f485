import type { Inode } from "../node/memory/tree.ts";
import type { SanVolume } from "./san.ts";

/** The file that every workload writes to. */
const JOURNAL = "journal";

export interface Writer {
  readonly node: string;
  readonly podUid: string;
}

/**
 * What workloads wrote into volumes and were told is on the disk. Whatever happens in between, the next one that opens the
 * volume finds exactly that: all of it, and nothing of another volume.
 */
export class VolumeData {
  readonly #acknowledged = new Map<string, string[]>();
  readonly #onWrite = new Set<(volume: SanVolume, writer: Writer) => void>();
  #writes = 0;

  /** Told of every write that reached the disk. */
  onWrite(listener: (volume: SanVolume, writer: Writer) => void): void {
    this.#onWrite.add(listener);
  }

  get writes(): number {
    return this.#writes;
  }

  /** One line, written and synced. */
  write(volume: SanVolume, root: Inode, writer: Writer, newFile: () => Inode): void {
    const line = `${volume.handle} ${++this.#writes} ${writer.node} ${writer.podUid}`;
    const file = root.children.get(JOURNAL) ?? newFile();
    root.children.set(JOURNAL, file);
    file.bytes = Buffer.concat([file.bytes, Buffer.from(`${line}\n`)]);
    this.#linesOf(volume.handle).push(line);
    for (const listener of this.#onWrite) listener(volume, writer);
  }

  /** What is wrong with the content of a volume; undefined where it is what was acknowledged. */
  problem(volume: SanVolume, root: Inode): string | undefined {
    const found = Buffer.from(root.children.get(JOURNAL)?.bytes ?? [])
      .toString("utf8")
      .split("\n")
      .slice(0, -1);
    const wanted = this.#linesOf(volume.handle);
    const foreign = found.find((line) => !line.startsWith(`${volume.handle} `));
    if (foreign !== undefined) return `${volume.handle} holds a byte of another volume: ${foreign}`;
    const lost = wanted.findIndex((line, at) => found[at] !== line);
    if (lost >= 0)
      return `${volume.handle} lost ${wanted.length - lost} of ${wanted.length} acknowledged writes, the first: ${wanted[lost]}`;
    return undefined;
  }

  forget(handle: string): void {
    this.#acknowledged.delete(handle);
  }

  #linesOf(handle: string): string[] {
    const lines = this.#acknowledged.get(handle) ?? [];
    this.#acknowledged.set(handle, lines);
    return lines;
  }
}
