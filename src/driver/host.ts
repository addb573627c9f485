/**
 * What the driver needs of a machine: files, sparse images, loop devices, filesystems and mounts. The real one runs
 * util-linux and e2fsprogs (`linux-host.ts`); the one in memory (`src/sim/driver-host.ts`) keeps the same contract,
 * and one that dies at its n-th step.
 */
export interface Host {
  readonly files: HostFiles;
  readonly images: HostImages;
  readonly loops: HostLoops;
  readonly filesystems: HostFilesystems;
  readonly mounts: HostMounts;
}

export type HostErrorCode =
  /** No room on the disk. */
  | "NoSpace"
  /** A program is not installed. */
  | "NoTool"
  /** The kernel refuses; for growth of a mounted ext4 this means CAP_SYS_RESOURCE is missing. */
  | "NotPermitted"
  /** This filesystem cannot do it, whoever asks. */
  | "NotSupported"
  | "TimedOut"
  /** Somebody uses it: an open file or a working directory below a mount. */
  | "Busy"
  | "NotFound"
  | "NotEmpty"
  | "Failed";

export class HostError extends Error {
  override readonly name = "HostError";
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export interface FileStat {
  readonly kind: "file" | "directory" | "block" | "symlink" | "other";
  readonly sizeBytes: bigint;
  /** What the disk really holds of it. */
  readonly allocatedBytes: bigint;
  /** Device and inode: who a file is, whatever its name. */
  readonly identity: string;
  /** `major:minor` of a block device. */
  readonly deviceNumber?: string;
}

export interface HostFiles {
  /** Written and fsynced under a name nobody reads. */
  writeDurable(path: string, text: string): Promise<void>;
  /** Atomic; both directories are fsynced. */
  rename(from: string, to: string): Promise<void>;
  /** Over the bytes that an existing file has, so that no room is needed; then cut to the text. Fsynced. */
  overwrite(path: string, text: string): Promise<void>;
  /** Undefined where there is none. */
  read(path: string): Promise<string | undefined>;
  /** Names in a directory, sorted; none where it is missing. */
  list(directory: string): Promise<readonly string[]>;
  /** One level; fsynced into its parent. An existing directory is fine. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** An empty regular file, over which a device is mounted. */
  makeFile(path: string): Promise<void>;
  /** Never follows a link, never removes what is inside; NotEmpty or Busy otherwise. Missing is fine. */
  removeDirectory(path: string): Promise<void>;
  /** Gone also after a power loss: the directory is fsynced. Missing is fine. */
  removeFile(path: string): Promise<void>;
  /** Of the path itself, not of what a link points at. Undefined where there is nothing. */
  stat(path: string): Promise<FileStat | undefined>;
  /**
   * Holds a file or directory against other processes of this machine, readers together and a writer alone, until the
   * answer is called or the process dies, however it dies. Waits until `signal`; then TimedOut. Undefined where there is none.
   */
  lock(
    path: string,
    options: { readonly shared: boolean; readonly signal: AbortSignal },
  ): Promise<(() => Promise<void>) | undefined>;
  /** The path with every link of its parent followed, as the mount table spells it. Undefined where the parent is missing. */
  resolve(path: string): Promise<string | undefined>;
}

export interface HostImages {
  /** Of exactly this size, all zero, fsynced. `thick` really allocates; NoSpace where it cannot. */
  create(path: string, sizeBytes: bigint, options: { readonly thick: boolean }): Promise<void>;
  /** Holes stay holes; fsynced. */
  copy(from: string, to: string, options?: { readonly signal?: AbortSignal }): Promise<void>;
  /**
   * A copy as of one moment, whoever writes meanwhile: of two writes of which the second began after the first had
   * ended, it never holds the second alone. NotSupported where the filesystem shares no blocks between files.
   */
  clone(from: string, to: string): Promise<void>;
  /** To this size at least: one that is larger already stays as it is. */
  grow(path: string, sizeBytes: bigint, options: { readonly thick: boolean }): Promise<void>;
  /**
   * Where the first byte is that is not zero; undefined only once every byte was read and is zero, holes being zero by
   * definition. What cannot be read is an error.
   */
  firstNonZero(path: string): Promise<bigint | undefined>;
  /** The bytes from `offsetBytes` on, in chunks of whole MiB but for the last. */
  read(path: string, offsetBytes: bigint): AsyncIterable<Uint8Array>;
  /** Free space and size of the disk that holds a directory. */
  pool(directory: string): Promise<{ readonly freeBytes: bigint; readonly totalBytes: bigint }>;
}

/** What a device says of a file that was deleted under it: it must still be found, to be let go. */
export function goneIdentity(path: string): string {
  return `gone: ${path}`;
}

export interface LoopDevice {
  /** `/dev/loop3`: a name, which the kernel gives to another file once this one is detached. */
  readonly path: string;
  /** `7:3` */
  readonly deviceNumber: string;
  /** Counts every attach and detach of the machine, so no two devices of one boot share it. Empty before Linux 5.15. */
  readonly diskseq: string;
  /** The identity of the file behind it, which survives renames and deletion. */
  readonly backing: string;
  readonly readonly: boolean;
  /** Marked to be detached by whoever closes it last: it may be gone, and its number another's, at any moment. */
  readonly autoclear: boolean;
}

export interface HostLoops {
  /** Every loop device of the machine, other people's included. */
  list(): Promise<readonly LoopDevice[]>;
  /**
   * The device already there for an image, its autoclear mark taken off, never a second; otherwise a new one, on none of
   * the paths in `avoid`. Over another device it is always a new one. Busy where a mark cannot be taken off.
   */
  attach(image: string, options: AttachOptions): Promise<LoopDevice>;
  /** Returns when the kernel has let go of the file, not before; Busy where it does not. Gone already is fine. */
  detach(device: LoopDevice): Promise<void>;
  /**
   * Keeps a device open: until the answer is called its path names this device and no other, whoever detaches it.
   * NotFound where the path names another one by now.
   */
  pin(device: LoopDevice): Promise<() => Promise<void>>;
  /** The device takes over the present size of its file. */
  refresh(path: string): Promise<void>;
  sizeBytes(path: string): Promise<bigint>;
  /** What was written reaches the file. */
  flush(path: string): Promise<void>;
}

export interface AttachOptions {
  readonly readonly: boolean;
  readonly avoid?: ReadonlySet<string>;
}

export type FsType = "ext4" | "xfs";

export type Content =
  /** No signature, and both ends of the device were read and are zero. A hint, no proof. */
  | { readonly kind: "blank" }
  | {
      readonly kind: "filesystem";
      readonly type: string;
      /** By its own superblock: an ext4 without a time of mounting, an xfs whose mkfs is in progress. */
      readonly neverMounted: boolean;
    }
  /** A partition table, two signatures, or bytes that nothing knows: never to be formatted. */
  | { readonly kind: "other"; readonly what: string };

export interface HostFilesystems {
  /** Types that can be made here; asked once at start. */
  offered(): readonly FsType[];
  /** A tool without which nothing works; undefined when all are there. */
  missingTool(): string | undefined;
  /** A device that cannot be read is an error, not blank. */
  probe(device: string): Promise<Content>;
  format(device: string, type: FsType): Promise<void>;
  /** Repairs what can be repaired without asking; not for mounted ones. */
  check(device: string, type: FsType): Promise<void>;
  sizeBytes(device: string, type: FsType): Promise<bigint>;
  /** To the size of its device; `mountPoint` where it is mounted. */
  grow(device: string, type: FsType, mountPoint?: string): Promise<void>;
}

export interface Mount {
  readonly path: string;
  /** `major:minor` of what is mounted. */
  readonly deviceNumber: string;
  /** Which part of that filesystem; `/` for all of it. */
  readonly root: string;
  readonly readonly: boolean;
  /** The filesystem below turned read-only, as ext4 does after errors. */
  readonly filesystemReadonly: boolean;
  /** The word by which the kernel says that the filesystem has failed and takes no more writes. */
  readonly failure?: string;
}

export interface HostMounts {
  /** The whole table in mount order: of two at one path the later covers the earlier. */
  list(): Promise<readonly Mount[]>;
  mount(device: string, path: string, type: FsType, flags: readonly string[]): Promise<void>;
  bind(source: string, target: string): Promise<void>;
  /** Changes flags of one mount only: `ro` here leaves others of the same filesystem writable. */
  remountBind(path: string, flags: readonly string[]): Promise<void>;
  /** The uppermost layer; Busy where somebody is inside. */
  unmount(path: string): Promise<void>;
  freeze(path: string): Promise<void>;
  /** One that is not frozen is fine. */
  thaw(path: string): Promise<void>;
  usage(path: string): Promise<Usage>;
}

export interface Usage {
  readonly totalBytes: bigint;
  readonly usedBytes: bigint;
  readonly availableBytes: bigint;
  readonly totalInodes: bigint;
  readonly usedInodes: bigint;
  readonly freeInodes: bigint;
}
