import type { Clock } from "../base/clock.ts";
import { HostError, type HostFilesystems, type HostImages } from "../driver/host.ts";
import {
  cloneDisk,
  copyDisk,
  diskOf,
  filesystemOn,
  halfDisk,
  newDisk,
  type Disk,
} from "../node/memory/disks.ts";
import type { Kernel } from "../node/memory/kernel.ts";
import { deviceAt, formatIn } from "../node/memory/mounts.ts";
import type { Device, Filesystem, Inode } from "../node/memory/tree.ts";
import { fileAt, noSpace, takeRoom } from "./driver-files.ts";

const CHUNK_BYTES = 1 << 20;
const BLOCK_BYTES = 4_096;

/** Sparse files that hold disks. Only what is really allocated counts against the pool. */
export function createDriverImages(
  kernel: Kernel,
  copies?: { readonly clock: Clock; readonly partMs: number },
): HostImages {
  const { tree, storage } = kernel;

  function allocate(path: string, disk: Disk, bytes: number): void {
    const more = BigInt(Math.max(0, bytes - disk.allocatedBytes));
    if (more > storage.pool.freeBytes) throw noSpace(path);
    storage.pool.freeBytes -= more;
    disk.allocatedBytes += Number(more);
  }

  /** A new file, or an old one cut to nothing. */
  function truncated(path: string): Inode {
    const place = tree.walk(path, { follow: false });
    if (place === undefined) throw new HostError("NotFound", `${path}: no directory above it`);
    if (place.inode === undefined) takeRoom(kernel, path);
    const inode = place.inode ?? tree.newInode("file", 0o600);
    storage.pool.freeBytes += BigInt(inode.disk?.allocatedBytes ?? 0);
    inode.bytes = new Uint8Array();
    inode.disk = newDisk(0);
    if (place.inode === undefined) tree.setEntry(place, inode);
    return inode;
  }

  async function betweenParts(signal: AbortSignal | undefined): Promise<void> {
    storage.filesystem.whileCopying?.();
    if (copies !== undefined) await copies.clock.sleep(copies.partMs);
    if (signal?.aborted === true) throw new HostError("TimedOut", "the copy was stopped");
  }

  return {
    async create(path, sizeBytes, { thick }) {
      const disk = newDisk(Number(sizeBytes));
      truncated(path).disk = disk;
      if (thick) allocate(path, disk, disk.sizeBytes);
    },
    async copy(from, to, { signal } = {}) {
      const source = readable(fileAt(kernel, from));
      if (signal?.aborted === true) throw new HostError("TimedOut", "the copy was stopped");
      const target = truncated(to);
      // Whoever dies in the middle leaves this.
      const half = halfDisk(source.sizeBytes);
      target.disk = half;
      allocate(to, half, source.allocatedBytes);
      target.disk = await copyDisk(source, () => betweenParts(signal));
    },
    async clone(from, to) {
      if (!storage.filesystem.reflink) throw new HostError("NotSupported", "operation not supported");
      storage.filesystem.whileCopying?.();
      const disk = cloneDisk(readable(fileAt(kernel, from)));
      storage.filesystem.whileCopying?.();
      // Shared blocks take no room of their own.
      truncated(to).disk = { ...disk, allocatedBytes: 0 };
    },
    async grow(path, sizeBytes, { thick }) {
      const disk = diskOf(fileAt(kernel, path));
      const wanted = Math.max(disk.sizeBytes, Number(sizeBytes));
      if (thick) allocate(path, disk, wanted);
      disk.sizeBytes = wanted;
    },
    async firstNonZero(path) {
      const disk = readable(fileAt(kernel, path));
      return disk.content.kind === "blank" && disk.blocks.size === 0 ? undefined : 0n;
    },
    read: (path, offsetBytes) => chunksOf(readable(fileAt(kernel, path)), Number(offsetBytes)),
    pool: async () => ({ ...storage.pool }),
  };
}

function readable(inode: Inode): Disk {
  const disk = diskOf(inode);
  if (disk.isBroken) throw new HostError("Failed", "read: EIO");
  return disk;
}

/** A filesystem stands in the first blocks as text, so that two of different content differ. */
async function* chunksOf(disk: Disk, offsetBytes: number): AsyncGenerator<Uint8Array, void> {
  const filesystem = filesystemOn(disk);
  const parts: (readonly [number, Uint8Array])[] =
    filesystem === undefined ? [] : [[0, Buffer.from(textOf(filesystem.root, ""))]];
  for (const [block, text] of disk.blocks)
    parts.push([(Number(block) || 0) * BLOCK_BYTES, Buffer.from(text)]);
  for (let from = offsetBytes; from < disk.sizeBytes; from += CHUNK_BYTES) {
    const chunk = new Uint8Array(Math.min(CHUNK_BYTES, disk.sizeBytes - from));
    for (const [at, bytes] of parts) {
      const [begin, end] = [Math.max(at, from), Math.min(at + bytes.length, from + chunk.length)];
      if (begin < end) chunk.set(bytes.subarray(begin - at, end - at), begin - from);
    }
    yield chunk;
  }
}

function textOf(inode: Inode, path: string): string {
  const own = `${path} ${inode.kind} ${inode.mode} ${inode.linkTarget}${Buffer.from(inode.bytes).toString()}\n`;
  const below = [...inode.children].sort(([a], [b]) => (a < b ? -1 : 1));
  return own + below.map(([name, child]) => textOf(child, `${path}/${name}`)).join("");
}

export function createDriverFilesystems({ tree, loops }: Kernel): HostFilesystems {
  function must(path: string): Device & { readonly disk: Disk } {
    const device = deviceAt(tree, path);
    if (device?.disk === undefined) throw new HostError("NotFound", `${path} is no device`);
    if (device.disk.isBroken) throw new HostError("Failed", "read: EIO");
    return device as Device & { readonly disk: Disk };
  }

  /** Tools of one filesystem find no superblock of theirs on another. */
  function formatted(path: string, type: string): Filesystem {
    const filesystem = filesystemOn(must(path).disk);
    if (filesystem?.type !== type) throw new HostError("Failed", `${path} has no superblock of ${type}`);
    return filesystem;
  }

  return {
    offered: () => ["ext4", "xfs"],
    missingTool: () => undefined,
    async probe(path) {
      const { content, everMounted, blocks } = must(path).disk;
      if (content.kind === "filesystem")
        return { kind: "filesystem", type: content.filesystem.type, neverMounted: !everMounted };
      // Both ends are looked at, no more.
      return content.kind === "blank" && blocks.has("0") ? { kind: "other", what: "bytes" } : content;
    },
    async format(path, type) {
      const device = must(path);
      if (loops.isMounted(device)) throw new HostError("Failed", `${path} is mounted`);
      formatIn(tree, device, type);
    },
    async check(path, type) {
      if (loops.isMounted(must(path))) throw new HostError("Failed", `${path} is mounted`);
      formatted(path, type);
    },
    sizeBytes: async (path, type) => BigInt(formatted(path, type).sizeBytes),
    async grow(path, type, mountPoint) {
      const device = must(path);
      if (loops.isMounted(device) !== (mountPoint !== undefined))
        throw new HostError("Failed", `${path}: mounted is ${String(mountPoint === undefined)}`);
      formatted(path, type).sizeBytes = device.sizeBytes;
    },
  };
}
