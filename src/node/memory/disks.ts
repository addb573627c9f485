import type { Random } from "../../base/random.ts";
import type { Filesystem, Inode } from "./tree.ts";
import { afterLoss } from "./unsynced.ts";

/**
 * What a block device or an image file holds. It has an identity of its own: attached, copied by whoever renames its file
 * or unplugged and found under another name, it is the same disk with the same filesystem.
 */
export interface Disk {
  sizeBytes: number;
  /** What the filesystem below gives it for good; 0 of a sparse image. */
  allocatedBytes: number;
  content: DiskContent;
  /**
   * What was written to the raw device, by name; a name that is a number is that block of 4 KiB. `writeBlock` says
   * whether it is on the disk at once, as with O_DIRECT.
   */
  blocks: Map<string, string>;
  /** What is on the disk of blocks that were written without a sync. */
  unsyncedBlocks: Map<string, string>;
  /** As the superblock notes it. */
  everMounted: boolean;
  /** Reads and writes of it fail. */
  isBroken: boolean;
}

export type DiskContent =
  | { readonly kind: "blank" }
  | { readonly kind: "filesystem"; readonly filesystem: Filesystem }
  /** Bytes that nothing here knows, such as half a filesystem. */
  | { readonly kind: "other"; readonly what: string };

export function newDisk(sizeBytes: number): Disk {
  return {
    sizeBytes,
    allocatedBytes: 0,
    content: { kind: "blank" },
    blocks: new Map(),
    unsyncedBlocks: new Map(),
    everMounted: false,
    isBroken: false,
  };
}

/** Any file can be behind a loop device; one that was not made as an image holds bytes that nothing knows. */
export function diskOf(inode: Inode): Disk {
  if (inode.disk !== undefined) return inode.disk;
  const disk = newDisk(inode.bytes.length);
  if (inode.bytes.some((byte) => byte !== 0)) disk.content = { kind: "other", what: "the bytes of a file" };
  inode.disk = disk;
  return disk;
}

export function filesystemOn(disk: Disk | undefined): Filesystem | undefined {
  return disk?.content.kind === "filesystem" ? disk.content.filesystem : undefined;
}

/** `mkfs`: what was there before is gone. */
export function formatDisk(disk: Disk, filesystem: Filesystem): void {
  disk.content = { kind: "filesystem", filesystem };
  disk.blocks = new Map();
  disk.unsyncedBlocks = new Map();
  disk.everMounted = false;
}

/** Through the page cache, where a sync takes along what was written before. */
export function writeBlock(
  { blocks, unsyncedBlocks }: Pick<Disk, "blocks" | "unsyncedBlocks">,
  name: string,
  text: string,
  { synced }: { readonly synced: boolean },
): void {
  if (synced) unsyncedBlocks.delete(name);
  else if (!unsyncedBlocks.has(name)) unsyncedBlocks.set(name, blocks.get(name) ?? "");
  blocks.set(name, text);
}

/** The power fails, or the disk is taken away: of each block what was there, what is new, or a part of that. */
export function loseBlocks(
  { blocks, unsyncedBlocks }: Pick<Disk, "blocks" | "unsyncedBlocks">,
  random: Random | undefined,
): void {
  for (const [name, before] of unsyncedBlocks) {
    const now = Buffer.from(blocks.get(name) ?? "");
    blocks.set(name, Buffer.from(afterLoss(Buffer.from(before), now, random)).toString("utf8"));
  }
  unsyncedBlocks.clear();
}

/** What a kill in the middle of a copy leaves. */
export function halfDisk(sizeBytes: number): Disk {
  return { ...newDisk(sizeBytes), content: { kind: "other", what: "half a copy" } };
}

/**
 * Byte by byte: inodes keep their numbers, as they do in a copied image. Of a mounted filesystem it is what has reached
 * the disk, as after a power cut.
 */
export function cloneDisk(disk: Disk): Disk {
  const blocks = new Map([...disk.blocks, ...disk.unsyncedBlocks]);
  const copy: Disk = { ...disk, blocks, unsyncedBlocks: new Map(), isBroken: false };
  const filesystem = filesystemOn(disk);
  if (filesystem !== undefined)
    copy.content = contentOf(filesystem, copy, filesystem.unsynced.durable(filesystem.root));
  return copy;
}

/**
 * The same, read from one end to the other while others write: `between` runs after each file and each block, in the
 * order of their names. What it makes of a filesystem that is written meanwhile may be a state that never was.
 */
export async function copyDisk(disk: Disk, between: () => Promise<void> | void): Promise<Disk> {
  const { sizeBytes, allocatedBytes, everMounted } = disk;
  const copy: Disk = { ...newDisk(sizeBytes), allocatedBytes, everMounted };
  const filesystem = filesystemOn(disk);
  copy.content =
    filesystem === undefined
      ? disk.content
      : contentOf(filesystem, copy, await copyTree(filesystem.root, between));
  for (const name of [...disk.blocks.keys()].sort()) {
    copy.blocks.set(name, disk.blocks.get(name) ?? "");
    await between();
  }
  return copy;
}

function contentOf(filesystem: Filesystem, disk: Disk, root: Inode): DiskContent {
  return {
    kind: "filesystem",
    filesystem: { ...filesystem, disk, root, unsynced: filesystem.unsynced.another(), isFrozen: false },
  };
}

async function copyTree(inode: Inode, between: () => Promise<void> | void): Promise<Inode> {
  const children = new Map<string, Inode>();
  for (const name of [...inode.children.keys()].sort()) {
    const child = inode.children.get(name);
    // Removed while we read its neighbours.
    if (child === undefined) continue;
    children.set(name, await copyTree(child, between));
    await between();
  }
  return { ...inode, children };
}
