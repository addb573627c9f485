import type { HostProcesses } from "./host-processes.ts";

/**
 * What the agent needs of its machine: files, mounts, block devices, programs. The real one is `linux-host.ts`; the
 * simulated one (`src/node/memory/host.ts`) keeps the same contract suite.
 *
 * A dead NFS server hangs whoever touches a path below its mount, for ever and uninterruptibly. So whatever may touch a
 * mounted path runs in a child process with a deadline; when that ends, the caller gets `TimedOut` and the child is
 * left to the kernel. The mount table itself never hangs.
 */
export interface Host {
  readonly files: HostFiles;
  readonly mounts: HostMounts;
  readonly devices: HostDevices;
  readonly programs: HostPrograms;
  readonly processes: HostProcesses;
}

export type HostErrorCode =
  | "NotFound"
  | "Exists"
  | "NotEmpty"
  /** Somebody uses it: an open file, a working directory below a mount, a device held exclusively. */
  | "Busy"
  | "NoSpace"
  | "NotPermitted"
  /** Took longer than its deadline and may still be going on. */
  | "TimedOut"
  /** A program is not installed. */
  | "NoTool"
  /** A mount whose server or device is gone: ENOTCONN, ESTALE, EIO, EACCES, EHOSTDOWN, EWOULDBLOCK, ENODEV. */
  | "Corrupted"
  /** What is on the disk is another filesystem than the one asked for. */
  | "FilesystemMismatch"
  /** A symbolic link or `..` led out of the directory it had to stay in. */
  | "Outside"
  | "Failed";

export class HostError extends Error {
  override readonly name = "HostError";
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export type FileKind = "file" | "directory" | "symlink" | "socket" | "block" | "char" | "other";

export interface FileStat {
  readonly kind: FileKind;
  /** Permission bits with setuid, setgid and sticky. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  /** Device and inode: who a file is, whatever its name. */
  readonly identity: string;
  /** `major:minor` of a block or character device. */
  readonly deviceNumber?: string;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly kind: FileKind;
}

export interface Owner {
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
}

/** Paths below the agent's own root directory, and whatever hostPath or local volumes name. */
export interface HostFiles {
  /** Temporary file, fsync, rename, fsync of the directory: after a crash the old or the new, never half. */
  writeDurable(path: string, text: string, mode?: number): Promise<void>;
  /** A plain new file, exact mode whatever the umask; for content that becomes visible by a later rename. */
  writeFile(path: string, bytes: Uint8Array, mode: number): Promise<void>;
  /** Undefined where there is none. */
  read(path: string): Promise<string | undefined>;
  readBytes(path: string): Promise<Uint8Array | undefined>;
  /** Sorted by name; undefined where the directory is missing. */
  list(directory: string): Promise<readonly DirectoryEntry[] | undefined>;
  /** With its parents; an existing directory keeps its mode. */
  makeDirectories(path: string, mode: number): Promise<void>;
  /** Empty regular file; one that is there is fine. The parent must exist. */
  makeFile(path: string, mode: number): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  /** Undefined where there is none or it is no link. */
  readLink(path: string): Promise<string | undefined>;
  /** Atomic, replaces the target. */
  rename(from: string, to: string): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  /** Of a link itself, never of what it points at. */
  chown(path: string, owner: Owner): Promise<void>;
  /** Missing is fine; NotEmpty or Busy otherwise. Never follows a link. */
  removeDirectory(path: string): Promise<void>;
  /** With the draft that an interrupted `writeDurable` of it left. Missing is fine. */
  removeFile(path: string): Promise<void>;
  /** Everything below and the directory itself, never across a mount point (Busy) and never through a link. Missing is fine. */
  removeTree(path: string): Promise<void>;
  /** Of the path itself, not of what a link points at. Undefined where there is nothing. May hang: has a deadline. */
  stat(path: string): Promise<FileStat | undefined>;
  /** Links followed. Undefined where there is nothing. May hang: has a deadline. */
  statTarget(path: string): Promise<FileStat | undefined>;
  /** With every link followed; undefined where something is missing. */
  realPath(path: string): Promise<string | undefined>;
  /** Space and inodes of the filesystem at a path. May hang: has a deadline. */
  usage(path: string): Promise<FilesystemUsage>;
  /** Bytes and inodes taken below a directory, not across mounts. */
  diskUsage(
    path: string,
    signal?: AbortSignal,
  ): Promise<{ readonly usedBytes: number; readonly inodesUsed: number }>;
  /**
   * Group ownership of a whole volume (section 20 of the specification), not across mounts. Files that could not be
   * changed are told in the answer and do not reject: a filesystem without owners is still a volume.
   */
  applyGroup(request: ApplyGroup): Promise<GroupApplied>;
  /** A directory inside `root` made or opened without ever leaving it, then bound to `target` (section 21). */
  bindSubPath(request: BindSubPath): Promise<void>;
}

export interface FilesystemUsage {
  /** Filesystem type as statfs knows it: `tmpfs`, `hugetlbfs`, `ext4`, `xfs`, `nfs` or a number in hex. */
  readonly type: string;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  readonly inodesUsed: number;
}

export interface ApplyGroup {
  readonly path: string;
  readonly gid: number;
  readonly readOnly: boolean;
  /** `true`: nothing is walked where the root directory already has group and mode. */
  readonly onRootMismatch: boolean;
  /** Called now and then with the count so far. */
  readonly onProgress?: (files: number) => void;
  readonly signal: AbortSignal;
}

export interface GroupApplied {
  /** Looked at; 0 where the root said that nothing was to do. */
  readonly files: number;
  readonly failed: number;
  /** The first of those that failed, `path: EPERM`; at most 5. */
  readonly errors: readonly string[];
}

export interface BindSubPath {
  /** The volume's directory, as mounted for the pod. */
  readonly root: string;
  /** Relative, no `..`; made where missing, with the mode of the root. */
  readonly subPath: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface MountPoint {
  readonly path: string;
  /** `major:minor` of what is mounted. */
  readonly deviceNumber: string;
  /** Which part of that filesystem; `/` for all of it. */
  readonly root: string;
  readonly type: string;
  /** `/dev/loop3`, `server:/export`, `tmpfs`. */
  readonly source: string;
  /** Options of this mount and of its filesystem, without repeats: `rw`, `relatime`, `size=1024k`. */
  readonly options: readonly string[];
}

export interface MountRequest {
  readonly source: string;
  readonly target: string;
  /** Empty for a bind. */
  readonly type: string;
  readonly options: readonly string[];
  /** For `formatAndMount`. `false`: it had a filesystem before, so that a disk which seems blank is refused. */
  readonly mayFormat?: boolean;
  /** Handed to the program where it must not appear in logs (`context=` is fine here). */
  readonly timeoutMs?: number;
}

/** The whole table as of one read, with what is asked of it most. */
export interface MountTable {
  /** In mount order: of two at one path the later covers the earlier. */
  readonly points: readonly MountPoint[];
  /** The uppermost at exactly this path, as the table spells it. */
  at(path: string): MountPoint | undefined;
  /** All at or below a path. */
  below(path: string): readonly MountPoint[];
  /** Other paths where the same part of the same filesystem is mounted. */
  references(path: string): readonly string[];
}

export interface HostMounts {
  /** Never hangs. One consistent read. */
  table(): Promise<MountTable>;
  /** Whether something is mounted at this very path, links of its parent followed. By the table: touches nothing that could hang. */
  isMountPoint(path: string): Promise<boolean>;
  mount(request: MountRequest): Promise<void>;
  /** Bind, then remount with the options and the flags the source has (section 23). */
  bind(source: string, target: string, options: readonly string[]): Promise<void>;
  /** Changes options of a mount: `size=`, `ro`. */
  remount(path: string, options: readonly string[]): Promise<void>;
  /** Uppermost layer. With `force`, `umount -f` follows when the deadline passed; with `lazy`, MNT_DETACH at once. */
  unmount(
    path: string,
    options?: { readonly timeoutMs?: number; readonly force?: boolean; readonly lazy?: boolean },
  ): Promise<void>;
  /** Unmounts where mounted, removes the empty directory or file; an error where something is still mounted after that. */
  cleanUp(path: string, options?: { readonly timeoutMs?: number; readonly force?: boolean }): Promise<void>;
  /** Formats what is blank, checks what is not, mounts it (section 23). `FilesystemMismatch` where it holds another type. */
  formatAndMount(request: MountRequest): Promise<void>;
  /** Makes the mount that contains `path` shared, binding it onto itself where it is none. */
  makeShared(path: string): Promise<void>;
  /** Whether tmpfs takes `noswap` here; decided once. */
  supportsNoSwap(): Promise<boolean>;
}

export interface HostDevices {
  /** Grows the filesystem to its device; `false` where there is none to grow. */
  growFilesystem(device: string, mountPath: string): Promise<boolean>;
  sizeBytes(device: string): Promise<number>;
  /** Opens it exclusively and closes it again: `true` where somebody else holds it. Missing or no device: `false`. */
  isInUse(path: string): Promise<boolean>;
  /** The loop device whose backing file this is. */
  loopOf(backing: string): Promise<string | undefined>;
  /** Holds a device file by a loop device, so that nobody takes it away; the one already there is kept. */
  attachLoop(backing: string): Promise<string>;
  /** Missing is fine. */
  detachLoop(backing: string): Promise<void>;
}

export interface ProgramResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface HostPrograms {
  /** An argument array, never a shell. Rejects only where it could not be run or took too long; exit codes are answers. */
  run(
    program: string,
    args: readonly string[],
    options: {
      readonly timeoutMs: number;
      readonly stdin?: string;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<ProgramResult>;
}
