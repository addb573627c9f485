import { chmod, lchown, open, readFile, rename, rmdir, symlink, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { hasGroup } from "./group-mode.ts";
import {
  HostError,
  type ApplyGroup,
  type DirectoryEntry,
  type FilesystemUsage,
  type FileStat,
  type GroupApplied,
  type HostFiles,
} from "./host.ts";
import { errnoOf, failing, orMissing } from "./linux-errors.ts";
import { lookOrMissing, lookUnlessMissing, makeDirectories, makeFile } from "./linux-make.ts";
import type { Probes } from "./linux-probes.ts";
import { bindSubPath, type SubPathDeps } from "./linux-sub-path.ts";

/** What `writeDurable` leaves when it is interrupted; `removeFile` of the file takes it along. */
const DRAFT = ".draft";

/**
 * Changes are made in this process: they go to the agent's own directories, which lie on a local disk. What is looked at
 * may be a dead mount, so that every look goes through the probes.
 */
export function createLinuxFiles(deps: SubPathDeps): HostFiles {
  const { probes, mounts } = deps;
  const writes = createSerially();
  const stat = (path: string) => lookOrMissing<FileStat>(probes, "stat", path);
  return {
    writeDurable: (path, text, mode = 0o600) =>
      failing(`write ${path}`, () => writes(path, () => writeDurable(path, text, mode))),
    writeFile: (path, bytes, mode) =>
      failing(`write ${path}`, async () => {
        await writeAll(path, bytes, mode, { sync: false });
      }),
    read: (path) => orMissing(`read ${path}`, () => readFile(path, "utf8")),
    readBytes: (path) => orMissing(`read ${path}`, () => readFile(path)),
    async list(directory) {
      const found = await lookUnlessMissing<DirectoryEntry[]>(probes, "list", directory, ["ENOENT"]);
      return found?.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    async makeDirectories(path, mode) {
      await makeDirectories(probes, path, mode);
    },
    makeFile: (path, mode) =>
      failing(`make ${path}`, async () => {
        await makeFile(path, mode);
      }),
    symlink: (target, path) => failing(`link ${path}`, () => symlink(target, path)),
    readLink: (path) => lookUnlessMissing(probes, "readLink", path, ["ENOENT", "ENOTDIR", "EINVAL"]),
    rename: (from, to) => failing(`rename ${from} to ${to}`, () => rename(from, to)),
    chmod: (path, mode) => failing(`change mode of ${path}`, () => chmod(path, mode)),
    chown: (path, { uid = -1, gid = -1 }) => failing(`change owner of ${path}`, () => lchown(path, uid, gid)),
    removeDirectory: (path) => failing(`remove ${path}`, () => unlessGone(() => rmdir(path))),
    removeFile: (path) =>
      failing(`remove ${path}`, async () => {
        await unlessGone(() => unlink(`${path}${DRAFT}`));
        await unlessGone(() => unlink(path));
      }),
    async removeTree(path) {
      await refuseMountsBelow(deps, path);
      await probes.walk({ action: "removeTree", path, doing: `remove ${path}` });
    },
    stat,
    statTarget: (path) => lookOrMissing(probes, "statTarget", path),
    realPath: (path) => lookOrMissing(probes, "realPath", path),
    usage: (path) => usage(probes, path),
    diskUsage: async (path, signal) =>
      (await probes.walk({ action: "diskUsage", path, doing: `measure ${path}`, signal })) as {
        usedBytes: number;
        inodesUsed: number;
      },
    applyGroup: (request) => applyGroup(probes, request),
    bindSubPath: (request) => bindSubPath({ probes, mounts, tools: deps.tools }, request),
  };
}

async function unlessGone(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

async function writeAll(
  path: string,
  content: string | Uint8Array,
  mode: number,
  { sync }: { readonly sync: boolean },
): Promise<void> {
  const file = await open(path, "w", mode);
  try {
    await file.chmod(mode);
    await file.writeFile(content);
    if (sync) await file.sync();
  } finally {
    await file.close();
  }
}

async function writeDurable(path: string, text: string, mode: number): Promise<void> {
  const draft = `${path}${DRAFT}`;
  try {
    await writeAll(draft, text, mode, { sync: true });
    await rename(draft, path);
  } catch (error) {
    await unlink(draft).catch(() => undefined);
    throw error;
  }
  const directory = await open(dirname(path), "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Two writers of one file would share a draft. Holds a path only while it is being written. */
function createSerially(): (path: string, work: () => Promise<void>) => Promise<void> {
  const last = new Map<string, Promise<void>>();
  return async (path, work) => {
    const before = last.get(path) ?? Promise.resolve();
    const mine = before.catch(() => undefined).then(work);
    last.set(path, mine);
    try {
      await mine;
    } finally {
      if (last.get(path) === mine) last.delete(path);
    }
  };
}

/** Nothing is removed where something is mounted below; the walk looks once more at every directory it enters. */
async function refuseMountsBelow({ probes, mounts }: SubPathDeps, path: string): Promise<void> {
  const parent = await lookOrMissing<string>(probes, "realPath", dirname(path));
  if (parent === undefined) return;
  const [mount] = (await mounts.table()).below(path.replace(dirname(path), parent));
  if (mount !== undefined)
    throw new HostError("Busy", `remove ${path}: ${mount.path} is mounted; unmount it first`);
}

const TYPES: Readonly<Record<number, string>> = {
  0x01021994: "tmpfs",
  0x958458f6: "hugetlbfs",
  0xef53: "ext4",
  0x58465342: "xfs",
  0x6969: "nfs",
  0x9123683e: "btrfs",
  0x794c7630: "overlay",
  0x65735546: "fuse",
};

async function usage(probes: Probes, path: string): Promise<FilesystemUsage> {
  const found = await probes.ask({ action: "usage", path, doing: `measure the filesystem at ${path}` });
  const { type, bsize, blocks, bfree, bavail, files, ffree } = found as Record<string, number> & StatFs;
  return {
    type: TYPES[type] ?? `0x${type.toString(16)}`,
    capacityBytes: blocks * bsize,
    availableBytes: bavail * bsize,
    usedBytes: (blocks - bfree) * bsize,
    inodes: files,
    inodesFree: ffree,
    inodesUsed: files - ffree,
  };
}

interface StatFs {
  readonly type: number;
  readonly bsize: number;
  readonly blocks: number;
  readonly bfree: number;
  readonly bavail: number;
  readonly files: number;
  readonly ffree: number;
}

async function applyGroup(probes: Probes, request: ApplyGroup): Promise<GroupApplied> {
  const { path, gid, readOnly, onRootMismatch, onProgress, signal } = request;
  signal.throwIfAborted();
  if (onRootMismatch) {
    // A root that cannot be read is walked: the walk then says what is wrong.
    const root = await lookOrMissing<FileStat>(probes, "stat", path).catch(() => undefined);
    if (root !== undefined && hasGroup(root, { gid, readOnly })) return { files: 0, failed: 0, errors: [] };
  }
  const doing = `set the group of ${path} to ${gid}`;
  const done = await probes.walk({
    action: "applyGroup",
    path,
    args: { gid, readOnly },
    doing,
    signal,
    onProgress,
  });
  return done as GroupApplied;
}
