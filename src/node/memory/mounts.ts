import type { Clock } from "../../base/clock.ts";
import { HostError, type HostDevices, type HostMounts, type MountRequest } from "../host.ts";
import { createMountTable } from "../mount-table.ts";
import { bindIn, putMount, withOptions } from "./binds.ts";
import type { Device, Filesystem, Inode, Tree } from "./tree.ts";

const UNMOUNT_MS_MAX = 60_000;
const FORMATS = new Set(["ext3", "ext4", "xfs", "btrfs"]);

/** `held` are paths where a process keeps a file open: they cannot be unmounted, nor opened exclusively. */
export function createMemoryMounts(tree: Tree, clock: Clock, held: ReadonlySet<string>): HostMounts {
  async function unmount(
    path: string,
    { timeoutMs = UNMOUNT_MS_MAX, force = false, lazy = false } = {},
  ): Promise<void> {
    const at = canonical(tree, path);
    const mounted = tree.topAt(at);
    if (mounted === undefined) throw new HostError("NotFound", `unmount ${path}: not mounted`);
    if (tree.hung.has(at) && !lazy) {
      await clock.sleep(timeoutMs);
      if (!force) throw new HostError("TimedOut", `unmount ${path}: no answer within ${timeoutMs} ms`);
    } else if (held.has(at) && !lazy) throw new HostError("Busy", `unmount ${path}: target is busy`);
    if (!lazy && tree.mounts.some((one) => one !== mounted && one.path.startsWith(`${at}/`)))
      throw new HostError("Busy", `unmount ${path}: something is mounted below it`);
    for (const gone of tree.mounts.filter(
      (one) => one === mounted || (lazy && one.path.startsWith(`${at}/`)),
    ))
      tree.mounts.splice(tree.mounts.indexOf(gone), 1);
    tree.hung.delete(at);
    tree.broken.delete(at);
  }

  return {
    table: async () => createMountTable(tree.mounts.map((mount) => toPoint(mount))),
    isMountPoint: async (path) => tree.topAt(canonical(tree, path)) !== undefined,
    mount: async (request) => mountIn(tree, request),
    bind: async (source, target, options) => bindIn(tree, source, target, options),
    async remount(path, options) {
      const mounted = tree.topAt(canonical(tree, path));
      if (mounted === undefined) throw new HostError("NotFound", `remount ${path}: not mounted`);
      mounted.options = withOptions(mounted.options, options);
    },
    unmount,
    async cleanUp(path, options = {}) {
      const place = tree.walk(path, { follow: false });
      if (place?.inode === undefined) return;
      while (tree.topAt(place.path) !== undefined) await unmount(path, options);
      const left = tree.walk(path, { follow: false })?.inode;
      if (left === undefined) return;
      if (left.children.size > 0 || left.bytes.length > 0)
        throw new HostError("NotEmpty", `clean up ${path}: it is not empty`);
      place.parent.children.delete(place.name);
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

function canonical(tree: Tree, path: string): string {
  return tree.walk(path, { follow: false })?.path ?? path;
}

function toPoint({ path, filesystem, rootPath, source, options }: Tree["mounts"][number]) {
  return {
    path,
    deviceNumber: filesystem.deviceNumber,
    root: rootPath,
    type: filesystem.type,
    source,
    options: [...new Set([...options, ...filesystem.options])],
  };
}

function mountIn(tree: Tree, { source, target, type, options }: MountRequest): void {
  if (options.includes("bind") || type === "") {
    bindIn(tree, source, target, options);
    return;
  }
  const device = deviceAt(tree, source);
  if (source.startsWith("/dev/") && device === undefined)
    throw new HostError("NotFound", `mount ${source} on ${target}: no such device`);
  if (device !== undefined && device.filesystem?.type !== type)
    throw new HostError(
      "Failed",
      `mount ${source} on ${target}: wrong fs type, bad option or bad superblock`,
    );
  const filesystem = device?.filesystem ?? anonymous(tree, type, options);
  putMount(tree, target, filesystem.root, {
    filesystem,
    root: filesystem.root,
    rootPath: "/",
    source,
    options: withOptions(["rw", "relatime"], options),
    shared: false,
  });
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
  const type = request.type === "" ? (device.filesystem?.type ?? "ext4") : request.type;
  if (device.filesystem === undefined) {
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
  if (device.filesystem !== undefined && device.filesystem.type !== type)
    throw new HostError(
      "FilesystemMismatch",
      `mount ${source} on ${target}: it holds ${device.filesystem.type}, not ${type}`,
    );
  mountIn(tree, { ...request, type });
}

function formatIn(tree: Tree, device: Device, type: string): void {
  device.filesystem = tree.newFilesystem(type, device.deviceNumber, device.sizeBytes);
  if (type.startsWith("ext"))
    device.filesystem.root.children.set("lost+found", tree.newInode("directory", 0o700));
}

export function createMemoryDevices(tree: Tree, held: ReadonlySet<string>): HostDevices {
  const loopOf = (backing: string): string | undefined => {
    const inode = tree.walk(backing, { follow: true })?.inode;
    const path = canonical(tree, backing);
    return [...tree.devices].find(
      ([, device]) =>
        device.backing !== undefined && (device.backing.inode === inode || device.backing.path === path),
    )?.[0];
  };
  return {
    async growFilesystem(path) {
      const device = deviceAt(tree, path);
      if (device?.filesystem === undefined) return false;
      device.filesystem.sizeBytes = device.sizeBytes;
      return true;
    },
    async sizeBytes(path) {
      const device = deviceAt(tree, path);
      if (device === undefined) throw new HostError("NotFound", `size of ${path}: no such device`);
      return device.sizeBytes;
    },
    async isInUse(path) {
      const device = deviceAt(tree, path);
      if (device === undefined) return false;
      const mounted = tree.mounts.some(({ filesystem }) => filesystem === device.filesystem);
      return mounted || held.has(path);
    },
    loopOf: async (backing) => loopOf(backing),
    async attachLoop(backing) {
      return loopOf(backing) ?? newLoop(tree, backing);
    },
    async detachLoop(backing) {
      const path = loopOf(backing);
      if (path === undefined) return;
      if (held.has(path)) throw new HostError("Busy", `detach ${path}: somebody has it open`);
      removeDevice(tree, path);
    },
  };
}

function newLoop(tree: Tree, backing: string): string {
  const found = tree.walk(backing, { follow: true });
  if (found?.inode === undefined)
    throw new HostError("NotFound", `attach a loop device to ${backing}: ENOENT`);
  const number = freeNumber(tree, "/dev/loop");
  const path = `/dev/loop${number}`;
  addDevice(tree, path, {
    deviceNumber: `7:${number}`,
    sizeBytes: found.inode.device?.sizeBytes ?? found.inode.bytes.length,
    filesystem: found.inode.device?.filesystem,
    backing: { inode: found.inode, path: found.path },
  });
  return path;
}

function freeNumber(tree: Tree, prefix: string): number {
  let number = 0;
  while (tree.devices.has(`${prefix}${number}`)) number++;
  return number;
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
function deviceAt(tree: Tree, path: string): Device | undefined {
  return tree.walk(path, { follow: true })?.inode?.device;
}
