import type { Clock } from "../../base/clock.ts";
import {
  HostError,
  type ApplyGroup,
  type FileKind,
  type FileStat,
  type GroupApplied,
  type HostFiles,
} from "../host.ts";
import { groupMode, hasGroup } from "../group-mode.ts";
import { bindSubPathIn } from "./sub-path.ts";
import type { Inode, Place, Tree } from "./tree.ts";

/** What the real host waits for a path that hangs. */
const LOOK_MS_MAX = 10_000;
const BLOCK_BYTES = 4_096;
/** How ext4 says that it has met an error and takes no more writes. */
export const FAILED = "emergency_ro";
/** A freeze lasts for a copy; who waits for its end looks this often. */
const FROZEN_LOOK_MS = 50;

export function createMemoryFiles(tree: Tree, clock: Clock): HostFiles {
  /** Whoever touches a path below a dead mount waits for his deadline, or hears that it is broken. */
  async function touch(doing: string, path: string, { follow = true } = {}): Promise<Place | undefined> {
    const place = tree.walk(path, { follow });
    const at = place?.path ?? path;
    if (tree.isHung(at) || tree.isHung(path)) {
      await clock.sleep(LOOK_MS_MAX);
      throw new HostError("TimedOut", `${doing} ${path}: no answer within ${LOOK_MS_MAX} ms`);
    }
    if (tree.isBroken(at)) throw new HostError("Corrupted", `${doing} ${path}: ENOTCONN`);
    return place;
  }

  async function there(doing: string, path: string, options = {}): Promise<Place & { inode: Inode }> {
    const place = await touch(doing, path, options);
    if (place?.inode === undefined) throw new HostError("NotFound", `${doing} ${path}: ENOENT`);
    return { ...place, inode: place.inode };
  }

  async function forWriting(doing: string, path: string, { follow = true } = {}): Promise<Place> {
    const place = await touch(doing, path, { follow });
    if (place === undefined) throw new HostError("NotFound", `${doing} ${path}: ENOENT`);
    refuseReadOnly(doing, place);
    if (!place.mount.filesystem.isFrozen) return place;
    await thawed(doing, place);
    return forWriting(doing, path, { follow });
  }

  /** Whoever writes to a frozen filesystem waits for its thaw, or for his deadline. */
  async function thawed(doing: string, { mount, path }: Place): Promise<void> {
    const endsAtMs = clock.now() + LOOK_MS_MAX;
    while (mount.filesystem.isFrozen) {
      if (clock.now() >= endsAtMs)
        throw new HostError("TimedOut", `${doing} ${path}: its filesystem is frozen`);
      await clock.sleep(FROZEN_LOOK_MS);
    }
  }

  async function putFile(path: string, bytes: Uint8Array, mode: number): Promise<void> {
    const place = await forWriting("write", path);
    const { inode, mount } = place;
    if (inode?.kind === "directory") throw new HostError("Failed", `write ${path}: EISDIR`);
    const file = inode ?? tree.newInode("file", mode);
    if (inode === undefined) tree.setEntry(place, file);
    tree.setBytes(mount.filesystem, file, bytes);
    file.disk = undefined;
    file.mode = mode;
  }

  async function readBytes(path: string): Promise<Uint8Array | undefined> {
    const inode = (await touch("read", path))?.inode;
    if (inode?.kind === "directory") throw new HostError("Failed", `read ${path}: EISDIR`);
    return inode?.bytes;
  }

  async function remove(path: string, wanted: "directory" | "file"): Promise<void> {
    const place = tree.walk(path, { follow: false });
    if (place?.inode === undefined) return;
    const doing = `remove ${path}`;
    if (tree.topAt(place.path) !== undefined) throw new HostError("Busy", `${doing}: EBUSY`);
    if ((place.inode.kind === "directory") !== (wanted === "directory"))
      throw new HostError("Failed", `${doing}: ${wanted === "directory" ? "ENOTDIR" : "EISDIR"}`);
    if (place.inode.children.size > 0) throw new HostError("NotEmpty", `${doing}: ENOTEMPTY`);
    refuseReadOnly("remove", place);
    tree.setEntry(place, undefined);
  }

  return {
    async writeDurable(path, text, mode = 0o600) {
      const place = await forWriting("write", path, { follow: false });
      if (place.inode?.kind === "directory") throw new HostError("Failed", `write ${path}: EISDIR`);
      const file = tree.newInode("file", mode);
      file.bytes = Buffer.from(text);
      tree.setEntry(place, file);
      place.mount.filesystem.unsynced.syncDirectory(place.parent);
    },
    writeFile: (path, bytes, mode) => putFile(path, Uint8Array.from(bytes), mode),
    async read(path) {
      const bytes = await readBytes(path);
      return bytes === undefined ? undefined : Buffer.from(bytes).toString("utf8");
    },
    readBytes: async (path) => {
      const bytes = await readBytes(path);
      return bytes === undefined ? undefined : Uint8Array.from(bytes);
    },
    async list(directory) {
      const place = await touch("list", directory);
      if (place?.inode === undefined) return undefined;
      if (place.inode.kind !== "directory") throw new HostError("Failed", `list ${directory}: ENOTDIR`);
      return [...place.inode.children]
        .map(([name, child]) => ({ name, kind: child.kind }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    async makeDirectories(path, mode) {
      let made = "";
      for (const step of path.split("/").filter((one) => one !== "")) {
        made += `/${step}`;
        const place = await forWritingOrThere(made);
        // Somebody else may have made it since it was looked for.
        const there = place.inode ?? place.parent.children.get(place.name);
        if (there === undefined) tree.setEntry(place, tree.newInode("directory", mode));
        else if (there.kind !== "directory")
          throw new HostError("Exists", `make directory ${path}: ${made} is no directory`);
      }
    },
    async makeFile(path, mode) {
      const place = await forWriting("make", path);
      if (place.inode?.kind === "directory") throw new HostError("Failed", `make ${path}: EISDIR`);
      if (place.inode === undefined && !place.parent.children.has(place.name))
        tree.setEntry(place, tree.newInode("file", mode));
    },
    async symlink(linkTarget, path) {
      const place = await forWriting("link", path, { follow: false });
      if (place.inode !== undefined) throw new HostError("Exists", `link ${path}: EEXIST`);
      tree.setEntry(place, tree.newInode("symlink", 0o777, { linkTarget }));
    },
    async readLink(path) {
      const inode = (await touch("read link", path, { follow: false }))?.inode;
      return inode?.kind === "symlink" ? inode.linkTarget : undefined;
    },
    rename: async (from, to) => renameIn(tree, from, to),
    async chmod(path, mode) {
      const place = await there("change mode of", path);
      await thawed("change mode of", place);
      place.inode.mode = mode;
    },
    async chown(path, owner) {
      const place = await there("change owner of", path, { follow: false });
      await thawed("change owner of", place);
      const { inode } = place;
      inode.uid = owner.uid ?? inode.uid;
      inode.gid = owner.gid ?? inode.gid;
    },
    removeDirectory: (path) => remove(path, "directory"),
    async removeFile(path) {
      await remove(`${path}.draft`, "file");
      await remove(path, "file");
    },
    async removeTree(path) {
      const place = tree.walk(path, { follow: false });
      if (place?.inode === undefined) return;
      refuseMountsBelow(tree, place.path);
      tree.setEntry(place, undefined);
    },
    async stat(path) {
      const place = await touch("look at", path, { follow: false });
      return place?.inode === undefined ? undefined : toStat({ ...place, inode: place.inode });
    },
    async statTarget(path) {
      const place = await touch("look at", path);
      return place?.inode === undefined ? undefined : toStat({ ...place, inode: place.inode });
    },
    async realPath(path) {
      const place = await touch("resolve", path);
      return place?.inode === undefined ? undefined : place.path;
    },
    async usage(path) {
      const { mount } = await there("measure", path);
      const taken = measure(mount.filesystem.root);
      return {
        type: mount.filesystem.type,
        capacityBytes: mount.filesystem.sizeBytes,
        availableBytes: mount.filesystem.sizeBytes - taken.usedBytes,
        usedBytes: taken.usedBytes,
        inodes: 65_536,
        inodesFree: 65_536 - taken.inodesUsed,
        inodesUsed: taken.inodesUsed,
      };
    },
    diskUsage: async (path) => measure((await there("measure", path)).inode),
    async applyGroup(request) {
      const place = await there("set the group of", request.path);
      await thawed("set the group of", place);
      return applyGroupIn(place.inode, request);
    },
    async bindSubPath(request) {
      await there("bind", request.root);
      bindSubPathIn(tree, request);
    },
  };

  async function forWritingOrThere(path: string): Promise<Place> {
    const place = await touch("make directory", path);
    if (place === undefined) throw new HostError("NotFound", `make directory ${path}: ENOENT`);
    if (place.inode !== undefined) return place;
    refuseReadOnly("make directory", place);
    if (!place.mount.filesystem.isFrozen) return place;
    await thawed("make directory", place);
    return forWritingOrThere(path);
  }
}

export function renameIn(tree: Tree, from: string, to: string): void {
  const source = tree.walk(from, { follow: false });
  const target = tree.walk(to, { follow: false });
  if (source?.inode === undefined || target === undefined)
    throw new HostError("NotFound", `rename ${from}: ENOENT`);
  if (tree.topAt(source.path) !== undefined || tree.topAt(target.path) !== undefined)
    throw new HostError("Busy", `rename ${from}: EBUSY`);
  if (target.inode !== undefined && target.inode.children.size > 0)
    throw new HostError("NotEmpty", `rename ${from}: ${to} is not empty`);
  tree.changeEntries(target.mount.filesystem, [
    [source, undefined],
    [target, source.inode],
  ]);
  if (source.inode.kind === "directory") tree.moveMounts(source.path, target.path);
}

export function refuseReadOnly(doing: string, { mount, path }: Place): void {
  if (mount.options.includes("ro") || mount.filesystem.options.includes(FAILED))
    throw new HostError("NotPermitted", `${doing} ${path}: EROFS`);
}

function refuseMountsBelow(tree: Tree, path: string): void {
  const mount = tree.mounts.find((one) => one.path === path || one.path.startsWith(`${path}/`));
  if (mount !== undefined)
    throw new HostError("Busy", `remove ${path}: ${mount.path} is mounted; unmount it first`);
}

export function toStat({ inode, mount }: Place & { readonly inode: Inode }): FileStat {
  const sizes: Partial<Record<FileKind, number>> = {
    file: sizeOf(inode),
    directory: BLOCK_BYTES,
    symlink: inode.linkTarget.length,
  };
  return {
    kind: inode.kind,
    mode: inode.mode,
    uid: inode.uid,
    gid: inode.gid,
    sizeBytes: sizes[inode.kind] ?? 0,
    identity: `${mount.filesystem.deviceNumber}/${inode.id}`,
    ...(inode.device === undefined ? {} : { deviceNumber: inode.device.deviceNumber }),
  };
}

export function sizeOf({ bytes, disk }: Inode): number {
  return disk?.sizeBytes ?? bytes.length;
}

export function measure(inode: Inode): { readonly usedBytes: number; readonly inodesUsed: number } {
  const content = inode.disk?.allocatedBytes ?? inode.bytes.length;
  const own = inode.kind === "directory" ? BLOCK_BYTES : Math.ceil(content / 512) * 512;
  return [...inode.children.values()]
    .map((child) => measure(child))
    .reduce(
      (sum, part) => ({
        usedBytes: sum.usedBytes + part.usedBytes,
        inodesUsed: sum.inodesUsed + part.inodesUsed,
      }),
      { usedBytes: own, inodesUsed: 1 },
    );
}

function applyGroupIn(
  root: Inode,
  { gid, readOnly, onRootMismatch, onProgress, signal }: ApplyGroup,
): GroupApplied {
  signal.throwIfAborted();
  if (onRootMismatch && hasGroup(root, { gid, readOnly })) return { files: 0, failed: 0, errors: [] };
  let files = 0;
  const visit = (inode: Inode): void => {
    for (const child of inode.children.values()) visit(child);
    inode.gid = gid;
    inode.mode = groupMode(inode, { readOnly });
    files++;
  };
  visit(root);
  onProgress?.(files);
  return { files, failed: 0, errors: [] };
}
