import { createFakeFlock } from "./fake-flock.testing.ts";
import { createFakeLoops, type FakeDevice } from "./fake-loops.testing.ts";
import { HostError, type FileStat, type FsType, type Host, type Mount } from "./host.ts";

/**
 * A machine in memory: what a process does to it stays when the process dies, as with a real kernel. Filesystems
 * hold named texts, so a test can write through a mount and find its data again wherever the image went.
 */
export interface FakeHost extends Host {
  /** Writes a file through a mounted path, as a workload would. */
  writeData(mountedPath: string, name: string, text: string): void;
  readData(mountedPath: string, name: string): string | undefined;
  /** Opens a device by its node or by a target, as a process does; it writes to that device until it is closed. */
  openDevice(path: string): OpenDevice;
  /** All mounts and devices are gone; files stay. */
  reboot(): void;
  /** Makes a directory with its parents, as the orchestrator does. */
  makePath(path: string): void;
  makeSymlink(path: string, to: string): void;
  /** Names of everything below a directory. */
  tree(directory: string): readonly string[];
  image(path: string): Image;
  frozen(): readonly string[];
  /** Somebody has a file open below this path. */
  busy(path: string, isBusy: boolean): void;
  readonly pool: { freeBytes: bigint; totalBytes: bigint };
  readonly filesystem: {
    /** Whether it shares blocks between files, as xfs does and ext4 does not. */
    reflink: boolean;
    /** What others do between two parts of a copy. */
    whileCopying?: () => void;
  };
  /** How many more files and directories the disk takes; at 0 nothing can be made, and what is removed gives one back. */
  readonly room: { files: number };
}

export interface OpenDevice {
  write(name: string, text: string): void;
  close(): void;
}

interface Image {
  content: { kind: "blank" } | { kind: "filesystem"; type: string } | { kind: "other"; what: string };
  fsBytes: bigint;
  data: Map<string, string>;
  /** As its superblock notes it. */
  everMounted: boolean;
  /** Reads and writes of it fail, as on a broken disk. */
  isBroken: boolean;
}

type Entry =
  | { kind: "directory"; inode: number }
  | { kind: "symlink"; inode: number; to: string }
  | { kind: "file"; inode: number; text: string; sizeBytes: bigint; allocatedBytes: bigint; image: Image };

type File = Extract<Entry, { kind: "file" }>;
type Device = FakeDevice<File>;

interface FakeMount extends Mount {
  /** A filesystem, which keeps its device. */
  readonly source?: Device;
  /** A device node, which names whatever has its number. */
  readonly node?: string;
}

const blankImage = (): Image => ({
  content: { kind: "blank" },
  fsBytes: 0n,
  data: new Map(),
  everMounted: false,
  isBroken: false,
});

export function createFakeHost(): FakeHost {
  const entries = new Map<string, Entry>([["/", { kind: "directory", inode: 1 }]]);
  let inodes = 1;
  let mounts: FakeMount[] = [];
  const frozen = new Map<string, Device | undefined>();
  const busy = new Set<string>();
  const opened = new Map<object, FakeMount>();
  const locks = createFakeFlock();
  const pool = { freeBytes: 50n << 30n, totalBytes: 100n << 30n };
  const filesystem: FakeHost["filesystem"] = { reflink: false };
  const room = { files: Infinity };

  const parentOf = (path: string) => path.slice(0, path.lastIndexOf("/")) || "/";
  const fail = (code: ConstructorParameters<typeof HostError>[0], text: string) => new HostError(code, text);
  const newFile = (text: string, sizeBytes = 0n): Extract<Entry, { kind: "file" }> => ({
    kind: "file",
    inode: ++inodes,
    text,
    sizeBytes,
    allocatedBytes: 0n,
    image: blankImage(),
  });

  /** A name that is new takes room; one that goes gives it back. */
  function place(at: string, entry: Entry): void {
    if (!entries.has(at)) {
      if (room.files <= 0) throw fail("NoSpace", `${at}: no space left on device`);
      room.files--;
    }
    entries.set(at, entry);
  }

  function drop(at: string): void {
    if (entries.delete(at)) room.files++;
  }

  function readable<T extends { image: Image }>(entry: T): T {
    if (entry.image.isBroken) throw fail("Failed", "read: EIO");
    return entry;
  }

  /** Follows links of the parent, not of the last step. */
  function locate(path: string): string | undefined {
    let at = "/";
    const steps = path.split("/").filter((step) => step !== "");
    for (const [index, step] of steps.entries()) {
      const entry = entries.get(at);
      if (entry?.kind !== "directory") return undefined;
      at = at === "/" ? `/${step}` : `${at}/${step}`;
      const found = entries.get(at);
      if (found?.kind === "symlink" && index < steps.length - 1) at = found.to;
    }
    return entries.get(parentOf(at))?.kind === "directory" ? at : undefined;
  }

  function must(path: string): string {
    const found = locate(path);
    if (found === undefined) throw fail("NotFound", `${path}: no directory above it`);
    return found;
  }

  function fileAt(path: string): Extract<Entry, { kind: "file" }> {
    const entry = entries.get(must(path));
    if (entry?.kind !== "file") throw fail("NotFound", `${path} is not a file`);
    return entry;
  }

  const below = (directory: string) => [...entries.keys()].filter((path) => path.startsWith(`${directory}/`));
  const isMounted = (device: Device) =>
    mounts.some(({ source }) => source === device) || [...frozen.values()].includes(device);
  const table = createFakeLoops<File>({ fileAt, isMounted });
  const deviceAt = (path: string): Device => {
    const found = table.at(path);
    if (found === undefined) throw fail("NotFound", `${path} is no device`);
    return found;
  };
  const topAt = (path: string) => mounts.filter((mount) => mount.path === locate(path)).at(-1);
  /** What a process gets that opens this path now. */
  const deviceBehind = (path: string): Device => {
    const top = topAt(path);
    const found = top?.source ?? table.at(top?.node ?? path);
    if (found === undefined) throw new Error(`${path}: nothing is mounted here, or no such device (ENXIO)`);
    return found;
  };
  const writeTo = (device: Device, path: string, name: string, text: string): void => {
    if (device.readonly) throw new Error(`EROFS: ${path}`);
    if ([...frozen.values()].includes(device)) throw new Error(`${path}: frozen`);
    device.entry.image.data.set(name, text);
  };

  function statOf(path: string): FileStat | undefined {
    const node = topAt(path)?.node ?? (table.hasNode(path) ? path : undefined);
    if (node !== undefined) {
      return {
        kind: "block",
        sizeBytes: 0n,
        allocatedBytes: 0n,
        identity: `dev/${node}`,
        deviceNumber: node.replace("/dev/loop", "7:"),
      };
    }
    const entry = entries.get(locate(path) ?? "");
    if (entry === undefined) return undefined;
    const size = entry.kind === "file" ? entry : { sizeBytes: 0n, allocatedBytes: 0n };
    return {
      kind: entry.kind,
      sizeBytes: size.sizeBytes,
      allocatedBytes: size.allocatedBytes,
      identity: `disk/${entry.inode}`,
    };
  }

  const files: Host["files"] = {
    async writeDurable(path, text) {
      place(must(path), newFile(text, BigInt(text.length)));
    },
    async overwrite(path, text) {
      const entry = fileAt(path);
      if (BigInt(text.length) > entry.sizeBytes && room.files <= 0)
        throw fail("NoSpace", `${path}: no space left on device`);
      Object.assign(entry, { text, sizeBytes: BigInt(text.length) });
    },
    async rename(from, to) {
      const entry = fileAt(from);
      const target = must(to);
      drop(must(from));
      place(target, entry);
    },
    async read(path) {
      const entry = entries.get(locate(path) ?? "");
      return entry?.kind === "file" ? entry.text : undefined;
    },
    async list(directory) {
      const at = locate(directory) ?? directory;
      return below(at)
        .map((path) => path.slice(at.length + 1))
        .filter((name) => !name.includes("/"))
        .sort();
    },
    async makeDirectory(path) {
      const at = must(path);
      const entry = entries.get(at);
      if (entry !== undefined && entry.kind !== "directory")
        throw fail("NotEmpty", `${path} is a ${entry.kind}`);
      place(at, entry ?? { kind: "directory", inode: ++inodes });
    },
    async makeFile(path) {
      const at = must(path);
      place(at, entries.get(at) ?? newFile(""));
    },
    async removeDirectory(path) {
      const at = locate(path);
      if (at === undefined || !entries.has(at)) return;
      if (mounts.some((mount) => mount.path === at)) throw fail("Busy", `${path} is a mount point`);
      if (below(at).length > 0) throw fail("NotEmpty", `${path} is not empty`);
      drop(at);
    },
    async removeFile(path) {
      const at = locate(path);
      if (at === undefined) return;
      if (mounts.some((mount) => mount.path === at)) throw fail("Busy", `${path} is a mount point`);
      drop(at);
    },
    async stat(path) {
      const found = statOf(path);
      // With a slash at its end a path names a directory or nothing.
      return path.endsWith("/") && found?.kind !== "directory" ? undefined : found;
    },
    resolve: async (path) => locate(path),
    async lock(path, options) {
      const entry = entries.get(locate(path) ?? "");
      return entry === undefined ? undefined : locks.take(entry.inode, options);
    },
  };

  function allocate(entry: Extract<Entry, { kind: "file" }>, sizeBytes: bigint, thick: boolean): void {
    const more = thick ? sizeBytes - entry.allocatedBytes : 0n;
    if (more > pool.freeBytes) throw fail("NoSpace", "no space left on device");
    pool.freeBytes -= more;
    entry.allocatedBytes += more;
    entry.sizeBytes = sizeBytes;
  }

  const images: Host["images"] = {
    async create(path, sizeBytes, { thick }) {
      const entry = newFile("");
      place(must(path), entry);
      allocate(entry, sizeBytes, thick);
    },
    async copy(from, to, { signal } = {}) {
      const source = readable(fileAt(from));
      if (signal?.aborted === true) throw fail("TimedOut", "stopped");
      const { content, data } = source.image;
      const image = { ...source.image, content: { ...content }, data: new Map<string, string>() };
      // From one end to the other, which takes a while.
      for (const name of [...data.keys()].sort()) {
        image.data.set(name, data.get(name) ?? "");
        filesystem.whileCopying?.();
      }
      place(must(to), { ...newFile("", source.sizeBytes), image });
    },
    async clone(from, to) {
      if (!filesystem.reflink) throw fail("NotSupported", "operation not supported");
      filesystem.whileCopying?.();
      const { image, sizeBytes } = readable(fileAt(from));
      const copy = { ...image, content: { ...image.content }, data: new Map(image.data) };
      filesystem.whileCopying?.();
      place(must(to), { ...newFile("", sizeBytes), image: copy });
    },
    async grow(path, sizeBytes, { thick }) {
      const entry = fileAt(path);
      allocate(entry, sizeBytes > entry.sizeBytes ? sizeBytes : entry.sizeBytes, thick);
    },
    async firstNonZero(path) {
      const { image } = readable(fileAt(path));
      return image.content.kind === "blank" && image.data.size === 0 ? undefined : 0n;
    },
    async *read(path, offsetBytes) {
      const { sizeBytes, image } = readable(fileAt(path));
      const bytes = new Uint8Array(Number(sizeBytes));
      for (const [block, text] of image.data) bytes.set(Buffer.from(text), Number(block) * 4_096);
      for (let at = Number(offsetBytes); at < bytes.length; at += 1 << 20)
        yield bytes.subarray(at, at + (1 << 20));
    },
    pool: async () => pool,
  };

  const filesystems: Host["filesystems"] = {
    offered: () => ["ext4", "xfs"],
    missingTool: () => undefined,
    async probe(device) {
      const { content, everMounted } = readable(deviceAt(device).entry).image;
      return content.kind === "filesystem" ? { ...content, neverMounted: !everMounted } : content;
    },
    async format(device, type) {
      const { entry, sizeBytes } = deviceAt(device);
      if (isMounted(deviceAt(device))) throw fail("Failed", `${device} is mounted`);
      Object.assign(readable(entry).image, {
        content: { kind: "filesystem", type },
        fsBytes: sizeBytes,
        data: new Map(),
        everMounted: false,
      });
    },
    async check(device, type) {
      if (isMounted(deviceAt(device))) throw fail("Failed", `${device} is mounted`);
      formatted(device, type);
    },
    sizeBytes: async (device, type) => formatted(device, type).fsBytes,
    async grow(device, type, mountPoint) {
      if (isMounted(deviceAt(device)) !== (mountPoint !== undefined))
        throw fail("Failed", `${device}: mounted is ${String(mountPoint === undefined)}`);
      formatted(device, type).fsBytes = deviceAt(device).sizeBytes;
    },
  };

  /** Tools of one filesystem find no superblock of theirs on another. */
  function formatted(device: string, type: FsType): Image {
    const { image } = readable(deviceAt(device).entry);
    if (image.content.kind !== "filesystem" || image.content.type !== type)
      throw fail("Failed", `${device} has no superblock of ${type}`);
    return image;
  }

  function addMount(path: string, what: { source: Device } | { node: string }, readonly: boolean): void {
    const at = must(path);
    if (!entries.has(at)) throw fail("NotFound", `${path}: nothing to mount on`);
    const node = "node" in what;
    mounts.push({
      path: at,
      deviceNumber: node ? "0:6" : what.source.deviceNumber,
      root: node ? what.node.slice("/dev".length) : "/",
      readonly,
      filesystemReadonly: false,
      ...what,
    });
  }

  const mountTable: Host["mounts"] = {
    list: async () => [...mounts],
    async mount(device, path, type, flags) {
      const found = deviceAt(device);
      const image = formatted(device, type);
      addMount(path, { source: found }, flags.includes("ro"));
      if (!flags.includes("ro")) image.everMounted = true;
    },
    async bind(source, target) {
      if (table.hasNode(source)) {
        addMount(target, { node: source }, false);
        return;
      }
      const top = topAt(source);
      if (top?.source === undefined) throw fail("Failed", `${source} is not mounted`);
      addMount(target, { source: top.source }, top.readonly);
    },
    async remountBind(path, flags) {
      const top = topAt(path);
      if (top === undefined) throw fail("Failed", "not mounted");
      mounts = mounts.map((mount) => (mount === top ? { ...mount, readonly: flags.includes("ro") } : mount));
    },
    async unmount(path) {
      const top = topAt(path);
      if (top === undefined) throw fail("Failed", "not mounted");
      if (busy.has(top.path) || [...opened.values()].includes(top)) throw fail("Busy", "target is busy");
      mounts = mounts.filter((mount) => mount !== top);
      table.settle();
    },
    async freeze(path) {
      const at = locate(path) ?? path;
      if (frozen.has(at)) throw fail("Busy", "already frozen");
      frozen.set(at, topAt(path)?.source);
    },
    async thaw(path) {
      if (topAt(path) !== undefined) frozen.delete(locate(path) ?? path);
    },
    async usage(path) {
      const totalBytes = deviceBehind(path).entry.image.fsBytes;
      return {
        totalBytes,
        usedBytes: 0n,
        availableBytes: totalBytes,
        totalInodes: 1_000n,
        usedInodes: 11n,
        freeInodes: 989n,
      };
    },
  };

  return {
    files,
    images,
    loops: table.loops,
    filesystems,
    mounts: mountTable,
    pool,
    filesystem,
    room,
    writeData(path, name, text) {
      if (topAt(path)?.readonly === true) throw new Error(`EROFS: ${path}`);
      writeTo(deviceBehind(path), path, name, text);
    },
    readData: (path, name) => deviceBehind(path).entry.image.data.get(name),
    openDevice(path) {
      const device = deviceBehind(path);
      const top = topAt(path);
      device.openers++;
      // Opened by way of a mount, it keeps that too.
      const via = {};
      if (top !== undefined) opened.set(via, top);
      return {
        write: (name, text) => writeTo(device, path, name, text),
        close() {
          device.openers--;
          opened.delete(via);
          table.settle();
        },
      };
    },
    reboot() {
      mounts = [];
      table.reboot();
      frozen.clear();
    },
    makePath(path) {
      path.split("/").reduce((parent, step) => {
        const at = step === "" ? parent : `${parent}/${step}`;
        if (at !== "" && !entries.has(at)) entries.set(at, { kind: "directory", inode: ++inodes });
        return at;
      }, "");
    },
    makeSymlink: (path, to) => void entries.set(path, { kind: "symlink", inode: ++inodes, to }),
    tree: (directory) => below(directory).sort(),
    image: (path) => fileAt(path).image,
    frozen: () => [...frozen.keys()],
    busy(path, isBusy) {
      if (isBusy) busy.add(path);
      else busy.delete(path);
    },
  };
}
