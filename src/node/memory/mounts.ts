import type { Clock } from "../../base/clock.ts";
import { HostError, type HostDevices, type HostMounts, type MountRequest, type MountTable } from "../host.ts";
import { createMountTable } from "../mount-table.ts";
import { bindIn, putMount, withOptions } from "./binds.ts";
import { filesystemOn, formatDisk } from "./disks.ts";
import { sizeOf } from "./files.ts";
import type { LoopDevice, Loops } from "./loops.ts";
import type { Device, Filesystem, Inode, Mounted, Tree } from "./tree.ts";

const UNMOUNT_MS_MAX = 60_000;
const FORMATS = new Set(["ext3", "ext4", "xfs", "btrfs"]);

export interface MountsOf {
  readonly tree: Tree;
  /** Paths where a process keeps a file open: they cannot be unmounted, nor opened exclusively. */
  readonly held: ReadonlySet<string>;
}

export function createMemoryMounts({ tree, held }: MountsOf, clock: Clock): HostMounts {
  async function unmount(
    path: string,
    { timeoutMs = UNMOUNT_MS_MAX, force = false, lazy = false } = {},
  ): Promise<void> {
    const at = canonical(tree, path);
    const isHung = tree.hung.has(at) && tree.topAt(at) !== undefined && !lazy;
    if (isHung) {
      await clock.sleep(timeoutMs);
      if (!force) throw new HostError("TimedOut", `unmount ${path}: no answer within ${timeoutMs} ms`);
    }
    unmountIn({ tree, held: isHung ? new Set() : held }, path, { lazy });
  }
  let known: { readonly changes: number; readonly table: MountTable } | undefined;

  return {
    async table() {
      if (known?.changes !== tree.mountChanges)
        known = { changes: tree.mountChanges, table: createMountTable(tree.mounts.map(toPoint)) };
      return known.table;
    },
    isMountPoint: async (path) => tree.topAt(canonical(tree, path)) !== undefined,
    mount: async (request) => mountIn(tree, request),
    bind: async (source, target, options) => bindIn(tree, source, target, options),
    async remount(path, options) {
      const mounted = tree.topAt(canonical(tree, path));
      if (mounted === undefined) throw new HostError("NotFound", `remount ${path}: not mounted`);
      tree.changeOptions(mounted, withOptions(mounted.options, options));
    },
    unmount,
    async cleanUp(path, options = {}) {
      const place = tree.walk(path, { follow: false });
      if (place?.inode === undefined) return;
      while (tree.topAt(place.path) !== undefined) await unmount(path, options);
      const left = tree.walk(path, { follow: false })?.inode;
      if (left === undefined) return;
      if (left.children.size > 0 || sizeOf(left) > 0)
        throw new HostError("NotEmpty", `clean up ${path}: it is not empty`);
      tree.setEntry(place, undefined);
    },
    formatAndMount: async (request) => formatAndMountIn(tree, request),
    async makeShared(path) {
      const at = canonical(tree, path);
      if (tree.topAt(at) === undefined) {
        const containing = tree.walk(at, { follow: true })?.mount;
        if (containing?.shared === true) return;
        bindIn(tree, at, at, []);
      }
      for (const mount of tree.mounts.filter((one) => one.path === at)) mount.shared = true;
    },
    supportsNoSwap: async () => true,
  };
}

/**
 * The uppermost layer of the host's namespace: Busy where a process of the host is in there or something is mounted below.
 * What a container has as a mount of its own keeps the filesystem, not this mount.
 */
export function unmountIn({ tree, held }: MountsOf, path: string, { lazy = false } = {}): void {
  const at = canonical(tree, path);
  const mounted = tree.topAt(at);
  if (mounted === undefined) throw new HostError("NotFound", `unmount ${path}: not mounted`);
  if (!lazy && (held.has(at) || mounted.users > 0))
    throw new HostError("Busy", `unmount ${path}: target is busy`);
  const below = tree.mounts.filter((one) => one !== mounted && one.path.startsWith(`${at}/`));
  if (!lazy && below.length > 0)
    throw new HostError("Busy", `unmount ${path}: something is mounted below it`);
  for (const gone of lazy ? below : []) tree.removeMount(gone);
  tree.removeMount(mounted);
  tree.hung.delete(at);
  tree.broken.delete(at);
}

export function canonical(tree: Tree, path: string): string {
  return tree.walk(path, { follow: false })?.path ?? path;
}

function toPoint({ path, filesystem, rootPath, source, options }: Mounted) {
  return {
    path,
    deviceNumber: filesystem.deviceNumber,
    root: rootPath,
    type: filesystem.type,
    source,
    options: [...new Set([...options, ...filesystem.options])],
  };
}

export function mountIn(tree: Tree, { source, target, type, options }: MountRequest): void {
  if (options.includes("bind") || type === "") {
    bindIn(tree, source, target, options);
    return;
  }
  const device = deviceAt(tree, source);
  if (source.startsWith("/dev/") && device === undefined)
    throw new HostError("NotFound", `mount ${source} on ${target}: no such device`);
  if (device !== undefined && filesystemOn(device.disk)?.type !== type)
    throw new HostError(
      "Failed",
      `mount ${source} on ${target}: wrong fs type, bad option or bad superblock`,
    );
  const filesystem = device === undefined ? anonymous(tree, type, options) : onDevice(tree, device);
  const isReadonly = device !== undefined && "readonly" in device && device.readonly === true;
  const noWrites = options.includes("ro") || isReadonly;
  if (filesystem.disk !== undefined && !noWrites) filesystem.disk.everMounted = true;
  putMount(tree, target, filesystem.root, {
    filesystem,
    root: filesystem.root,
    rootPath: "/",
    source,
    // As mount(8) does with a device that is write-protected.
    options: withOptions(["rw", "relatime"], isReadonly ? [...options, "ro"] : options),
    shared: false,
  });
}

/** Mounted already it is the same one again, by whatever device; otherwise it is this device's now. */
function onDevice(tree: Tree, device: Device): Filesystem {
  const filesystem = filesystemOn(device.disk);
  if (filesystem === undefined) throw new HostError("Failed", "there is no filesystem to mount");
  if (!tree.isUsed(filesystem)) filesystem.deviceNumber = device.deviceNumber;
  return filesystem;
}

function anonymous(tree: Tree, type: string, options: readonly string[]): Filesystem {
  const size = options.find((option) => option.startsWith("size="))?.slice("size=".length);
  const filesystem = tree.newFilesystem(type, tree.anonymousNumber(), Number(size ?? 1 << 30));
  if (type === "tmpfs") filesystem.root.mode = 0o1777;
  return filesystem;
}

function formatAndMountIn(tree: Tree, request: MountRequest): void {
  const { source, target, options } = request;
  const device = deviceAt(tree, source);
  if (device === undefined) throw new HostError("NotFound", `mount ${source} on ${target}: no such device`);
  const before = filesystemOn(device.disk);
  const type = request.type === "" ? (before?.type ?? "ext4") : request.type;
  if (before === undefined) {
    if (request.mayFormat === false)
      throw new HostError(
        "Failed",
        `mount ${source} on ${target}: it seems blank, but held a filesystem before`,
      );
    if (options.includes("ro"))
      throw new HostError(
        "Failed",
        `mount ${source} on ${target}: it holds no filesystem and ro forbids to make one`,
      );
    if (!FORMATS.has(type)) throw new HostError("NoTool", `mkfs.${type} is not installed`);
    formatIn(tree, device, type);
  }
  if (before !== undefined && before.type !== type)
    throw new HostError(
      "FilesystemMismatch",
      `mount ${source} on ${target}: it holds ${before.type}, not ${type}`,
    );
  mountIn(tree, { ...request, type });
}

/** `mkfs` on a device, of its present size. */
export function formatIn(tree: Tree, { disk, deviceNumber, sizeBytes }: Device, type: string): void {
  if (disk === undefined) throw new HostError("NotFound", `mkfs.${type}: no such device`);
  const filesystem = tree.newFilesystem(type, deviceNumber, sizeBytes, disk);
  if (type.startsWith("ext")) filesystem.root.children.set("lost+found", tree.newInode("directory", 0o700));
  formatDisk(disk, filesystem);
}

export function createMemoryDevices(
  { tree, held }: MountsOf,
  { loops }: { readonly loops: Loops },
): HostDevices {
  /** As the kernel names it, however it is called by now. */
  const loopOf = (backing: string): LoopDevice | undefined => {
    const path = canonical(tree, backing);
    return loops.attached().find((device) => device.backing?.path === path);
  };
  return {
    async growFilesystem(path) {
      const device = deviceAt(tree, path);
      const filesystem = filesystemOn(device?.disk);
      if (device === undefined || filesystem === undefined) return false;
      filesystem.sizeBytes = device.sizeBytes;
      return true;
    },
    async sizeBytes(path) {
      const device = deviceAt(tree, path);
      if (device === undefined) throw new HostError("NotFound", `size of ${path}: no such device`);
      return device.sizeBytes;
    },
    async isInUse(path) {
      const device = deviceAt(tree, path);
      return device !== undefined && (loops.isMounted(device) || held.has(path));
    },
    loopOf: async (backing) => loopOf(backing)?.path,
    async attachLoop(backing) {
      const there = loopOf(backing);
      if (there !== undefined) return there.path;
      const place = tree.walk(backing, { follow: true });
      if (place === undefined) throw new HostError("NotFound", `attach a loop device to ${backing}: ENOENT`);
      return loops.attach(place, { readonly: false }).path;
    },
    async detachLoop(backing) {
      const device = loopOf(backing);
      if (device !== undefined && !loops.detach(device))
        throw new HostError("Busy", `detach ${device.path}: somebody has it open`);
    },
  };
}

export function addDevice(tree: Tree, path: string, device: Device): Inode {
  const inode = tree.newInode("block", 0o660, { device });
  const place = tree.walk(path, { follow: false });
  if (place === undefined) throw new HostError("NotFound", `add device ${path}: ENOENT`);
  place.parent.children.set(place.name, inode);
  tree.devices.set(path, device);
  return inode;
}

export function removeDevice(tree: Tree, path: string): void {
  const place = tree.walk(path, { follow: false });
  place?.parent.children.delete(place.name);
  tree.devices.delete(path);
}

/** A bind mount of a device file is that device. */
export function deviceAt(tree: Tree, path: string): Device | undefined {
  return tree.walk(path, { follow: true })?.inode?.device;
}
