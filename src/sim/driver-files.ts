import { HostError, type FileStat, type HostFiles } from "../driver/host.ts";
import { refuseReadOnly, renameIn, sizeOf, toStat } from "../node/memory/files.ts";
import type { Kernel } from "../node/memory/kernel.ts";
import type { Inode, Place } from "../node/memory/tree.ts";

const BLOCK_BYTES = 4_096;

/** The driver's files: the same directories as the node agent's, where each new name takes room and each removed one gives it back. */
export function createDriverFiles({ tree, locks, storage }: Kernel): HostFiles {
  const locate = (path: string) => tree.walk(path, { follow: false });

  function must(path: string): Place {
    const place = locate(path);
    if (place === undefined) throw new HostError("NotFound", `${path}: no directory above it`);
    return place;
  }

  function make(path: string, place: Place, inode: Inode): void {
    refuseReadOnly("make", place);
    takeRoom({ storage }, path);
    tree.setEntry(place, inode);
  }

  function remove(path: string, wanted: "file" | "directory"): void {
    const place = locate(path);
    if (place?.inode === undefined) return;
    if (tree.topAt(place.path) !== undefined) throw new HostError("Busy", `${path} is a mount point`);
    if ((place.inode.kind === "directory") !== (wanted === "directory")) {
      // rmdir of a file answers ENOTDIR, which is nothing to remove; unlink of a directory EISDIR.
      if (wanted === "directory") return;
      throw new HostError("Failed", `remove ${path}: EISDIR`);
    }
    if (place.inode.children.size > 0) throw new HostError("NotEmpty", `${path} is not empty`);
    refuseReadOnly("remove", place);
    tree.setEntry(place, undefined);
    giveRoom({ storage }, place.inode);
  }

  return {
    async writeDurable(path, text) {
      const place = must(path);
      if (place.inode?.kind === "directory") throw new HostError("Failed", `write ${path}: EISDIR`);
      const inode = place.inode ?? tree.newInode("file", 0o600);
      if (place.inode === undefined) make(path, place, inode);
      inode.bytes = Buffer.from(text);
      inode.disk = undefined;
      place.mount.filesystem.unsynced.syncFile(inode);
    },
    async overwrite(path, text) {
      const inode = fileAt({ tree }, path);
      const bytes = Buffer.from(text);
      if (bytes.length > sizeOf(inode) && storage.room.files <= 0) throw noSpace(path);
      inode.bytes = bytes;
    },
    async rename(from, to) {
      const { inode: replaced, mount, parent } = must(to);
      const source = must(from).parent;
      renameIn(tree, from, to);
      for (const directory of [parent, source]) mount.filesystem.unsynced.syncDirectory(directory);
      if (replaced !== undefined) giveRoom({ storage }, replaced);
    },
    async read(path) {
      const inode = tree.walk(path, { follow: true })?.inode;
      return inode?.kind === "file" ? Buffer.from(inode.bytes).toString("utf8") : undefined;
    },
    async list(directory) {
      return [...(tree.walk(directory, { follow: true })?.inode?.children.keys() ?? [])].sort();
    },
    async makeDirectory(path, mode) {
      const place = must(path);
      if (place.inode === undefined) {
        make(path, place, tree.newInode("directory", mode));
        place.mount.filesystem.unsynced.syncDirectory(place.parent);
      } else if (place.inode.kind !== "directory")
        throw new HostError("NotEmpty", `${path} is a ${place.inode.kind}`);
    },
    async makeFile(path) {
      const place = must(path);
      if (place.inode === undefined) make(path, place, tree.newInode("file", 0o600));
    },
    removeDirectory: async (path) => remove(path, "directory"),
    async removeFile(path) {
      const place = locate(path);
      remove(path, "file");
      if (place !== undefined) place.mount.filesystem.unsynced.syncDirectory(place.parent);
    },
    async stat(path) {
      const place = locate(path);
      if (place?.inode === undefined) return undefined;
      if (tree.isBroken(place.path)) throw new HostError("Failed", `look at ${path}: ENOTCONN`);
      const found = toFileStat({ ...place, inode: place.inode });
      // With a slash at its end a path names a directory or nothing.
      return path.endsWith("/") && found.kind !== "directory" ? undefined : found;
    },
    resolve: async (path) => locate(path)?.path,
    async lock(path, options) {
      const inode = tree.walk(path, { follow: true })?.inode;
      if (inode === undefined) return undefined;
      const release = await locks.take(inode, options);
      return async () => release();
    },
  };
}

export function fileAt({ tree }: Pick<Kernel, "tree">, path: string): Inode {
  const inode = tree.walk(path, { follow: true })?.inode;
  if (inode?.kind !== "file") throw new HostError("NotFound", `${path} is not a file`);
  return inode;
}

type Disk = Pick<Kernel, "storage">;

export function takeRoom({ storage: { room } }: Disk, path: string): void {
  if (room.files <= 0) throw noSpace(path);
  room.files--;
}

export function giveRoom({ storage: { room, pool } }: Disk, { disk }: Inode): void {
  room.files++;
  pool.freeBytes += BigInt(disk?.allocatedBytes ?? 0);
}

export function noSpace(path: string): HostError {
  return new HostError("NoSpace", `${path}: no space left on device`);
}

function toFileStat(place: Place & { readonly inode: Inode }): FileStat {
  const { kind, identity, deviceNumber } = toStat(place);
  const { disk, bytes } = place.inode;
  const allocated = disk?.allocatedBytes ?? Math.ceil(bytes.length / BLOCK_BYTES) * BLOCK_BYTES;
  return {
    kind: kind === "char" || kind === "socket" ? "other" : kind,
    sizeBytes: BigInt(kind === "file" ? sizeOf(place.inode) : 0),
    allocatedBytes: BigInt(allocated),
    identity,
    ...(deviceNumber !== undefined && { deviceNumber }),
  };
}
