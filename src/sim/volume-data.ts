import { writeBlock } from "../node/memory/disks.ts";
import type { Mounted, Tree } from "../node/memory/tree.ts";
import { Copies, type Content } from "./copies.ts";
import { diskOf, type StoredVolume } from "./storage.ts";

/** Where a workload writes: a file of a filesystem, or a block of a raw device. */
export interface Journal {
  read(): string;
  /** Synced, all of it is on the disk; otherwise the kernel has it, and a power loss may take or cut it. */
  append(text: string, options: Synced): void;
}

export interface Synced {
  readonly synced: boolean;
}

/** A block of a raw device by its number, which is not among those that tell a filesystem. */
const BLOCK = "7";
const FILE = "journal";

/** Of what a container has by this mount. */
export function journalOf(mount: Mounted, tree: Tree): Journal {
  const { root, filesystem } = mount;
  if (root.device !== undefined) {
    const read = () => diskOf(mount)?.blocks.get(BLOCK) ?? "";
    return {
      read,
      append(text, options) {
        const disk = diskOf(mount);
        if (disk !== undefined) writeBlock(disk, BLOCK, read() + text, options);
      },
    };
  }
  return {
    read: () => Buffer.from(root.children.get(FILE)?.bytes ?? []).toString("utf8"),
    append(text, { synced }) {
      const there = root.children.get(FILE);
      const file = there ?? tree.newInode("file", 0o644);
      if (there === undefined) tree.setEntry({ parent: root, name: FILE, mount }, file);
      tree.setBytes(filesystem, file, Buffer.concat([file.bytes, Buffer.from(text)]));
      if (!synced) return;
      filesystem.unsynced.syncFile(file);
      filesystem.unsynced.syncDirectory(root);
    },
  };
}

export interface Writer {
  readonly node: string;
  readonly podUid: string;
}

export interface Write extends Synced {
  readonly volume: StoredVolume;
  readonly journal: Journal;
}

/**
 * What workloads wrote into volumes. Whatever happens in between, the next one that opens the volume finds all that was
 * synced and nothing of another volume; without a power loss, also what was not.
 */
export class VolumeData {
  readonly copies = new Copies((handle) => this.#contentOf(handle));
  readonly #contents = new Map<string, Content>();
  readonly #onWrite = new Set<(volume: StoredVolume, writer: Writer) => void>();
  #writes = 0;

  /** Told of every write. */
  onWrite(listener: (volume: StoredVolume, writer: Writer) => void): void {
    this.#onWrite.add(listener);
  }

  get writes(): number {
    return this.#writes;
  }

  /** One line. */
  write({ volume, journal, synced }: Write, writer: Writer): void {
    const content = this.#contentOf(volume.handle);
    const before = journal.read();
    settle(content, before);
    const line = `${volume.handle} ${++this.#writes} ${writer.node} ${writer.podUid}`;
    // The last one was cut.
    const begin = before === "" || before.endsWith("\n") ? "" : "\n";
    journal.append(`${begin}${line}\n`, { synced });
    content.wanted.push(line);
    if (synced) content.synced = content.wanted.length;
    for (const listener of this.#onWrite) listener(volume, writer);
  }

  /** The power of a machine that had it failed, or it was taken from one: what was not synced may be gone. */
  mayHaveLost({ handle }: StoredVolume): void {
    const content = this.#contentOf(handle);
    content.uncertain.push(...content.wanted.splice(content.synced));
  }

  /** What is wrong with the content of a volume; undefined where it is what was written and synced. */
  problem({ handle }: StoredVolume, journal: Journal): string | undefined {
    const content = this.#contentOf(handle);
    const text = journal.read();
    const lines = text.split("\n").filter((line) => line !== "");
    const miscopied = this.copies.open(handle, lines);
    if (miscopied !== undefined) return miscopied;
    settle(content, text);
    const { wanted, cut } = content;
    const known = new Set(wanted);
    const isPart = (line: string) => cut.some((whole) => whole.startsWith(line));
    const foreign = lines.find(
      (line) => !known.has(line) && !isPart(line) && !isCutOrBegins(line, `${handle} `),
    );
    if (foreign !== undefined) return `${handle} holds a byte of another volume: ${foreign}`;
    let met = 0;
    for (const line of lines) if (line === wanted[met]) met++;
    const lost = wanted.length - met;
    if (lost > 0)
      return `${handle} lost ${lost} of ${wanted.length} acknowledged writes, the first: ${wanted[met]}`;
    const unknown = lines.find((line) => !known.has(line) && !isPart(line));
    return unknown === undefined ? undefined : `${handle} holds what nobody wrote: ${unknown}`;
  }

  forget(handle: string): void {
    this.#contents.delete(handle);
    this.copies.forget(handle);
  }

  #contentOf(handle: string): Content {
    const content = this.#contents.get(handle) ?? { wanted: [], synced: 0, uncertain: [], cut: [] };
    this.#contents.set(handle, content);
    return content;
  }
}

/** What is there after a power loss is on the disk. */
function settle(content: Content, text: string): void {
  const { uncertain, wanted, cut } = content;
  if (uncertain.length === 0) return;
  for (const line of uncertain.splice(0)) (text.includes(`${line}\n`) ? wanted : cut).push(line);
  content.synced = wanted.length;
}

/** Of a line that begins so, or was cut before. */
function isCutOrBegins(line: string, begin: string): boolean {
  return line.startsWith(begin) || begin.startsWith(line);
}
