import { createSeededRandom } from "../base/seeded-random.ts";
import type { Disk } from "../node/memory/disks.ts";
import { createMemoryHost, type MemoryHost } from "../node/memory/host.ts";
import type { Kernel, Storage } from "../node/memory/kernel.ts";
import type { OpenDevice } from "../node/memory/open-device.ts";
import type { Filesystem, Inode, Place } from "../node/memory/tree.ts";
import { createDriverHost } from "../sim/driver-host.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import type { Host } from "./host.ts";

/**
 * The machine in memory of the whole project (`src/node/memory`), as the driver sees it and with what its tests ask of
 * it. Whatever a volume holds, a filesystem or raw blocks, is named texts here.
 */
export interface FakeHost extends Host, Storage {
  readonly machine: MemoryHost;
  /** Writes a file through a mounted path, as a workload would, or to the device that is bound there. */
  writeData(mountedPath: string, name: string, text: string): void;
  readData(mountedPath: string, name: string): string | undefined;
  openDevice(path: string): OpenDevice;
  /** All mounts and devices are gone; files stay. */
  reboot(): void;
  /** Makes a directory with its parents, as the orchestrator does. */
  makePath(path: string): void;
  makeSymlink(path: string, to: string): void;
  /** Names of everything below a directory, not across mounts. */
  tree(directory: string): readonly string[];
  image(path: string): FakeImage;
  /** Where filesystems are mounted that are frozen. */
  frozen(): readonly string[];
  /** Somebody has a file open below this path. */
  busy(path: string, isBusy: boolean): void;
}

export type { OpenDevice };

/** What an image holds, to be looked at and to be spoiled. */
export interface FakeImage {
  content:
    | { readonly kind: "blank" }
    | { readonly kind: "filesystem"; readonly type: string }
    | { readonly kind: "other"; readonly what: string };
  readonly fsBytes: bigint;
  data: Pick<Map<string, string>, "get" | "set">;
  everMounted: boolean;
  isBroken: boolean;
}

export function createFakeHost(): FakeHost {
  const clock = new SimScheduler(createSeededRandom("machine")).createClock();
  const machine = createMemoryHost({ clock });
  const { kernel } = machine;
  const { tree, storage } = kernel;
  const host = createDriverHost(machine);
  return {
    ...host,
    mounts: {
      ...host.mounts,
      // The disk of the machine itself is no business of these tests.
      list: async () => (await host.mounts.list()).filter(({ path }) => path !== "/"),
    },
    ...storage,
    machine,
    writeData: (path, name, text) => writeAt(kernel, path, name, text),
    readData: (path, name) => dataOf(mountedAt(kernel, path)).get(name),
    openDevice: (path) => machine.openDevice(path),
    reboot: () => machine.reboot(),
    makePath: (path) => makePath(kernel, path),
    makeSymlink: (path, linkTarget) => putIn(kernel, path, tree.newInode("symlink", 0o777, { linkTarget })),
    tree: (directory) => namesBelow(kernel, directory),
    image: (path) => imageAt(kernel, path),
    frozen: () => tree.filesystemsInUse().flatMap((one) => (one.isFrozen ? [pathOf(kernel, one)] : [])),
    busy: (path, isBusy) => (isBusy ? machine.hold(path) : machine.release(path)),
  };
}

function mountedAt({ tree, loops }: Kernel, path: string): { readonly place: Place; readonly disk: Disk } {
  const place = tree.walk(path, { follow: true });
  const device = place?.inode?.device;
  const disk = device === undefined ? place?.mount.filesystem.disk : device.disk;
  const isMounted = place !== undefined && (place.mount.path === place.path || loops.at(path) !== undefined);
  if (!isMounted || disk === undefined)
    throw new Error(`${path}: nothing is mounted here, or no such device (ENXIO)`);
  return { place, disk };
}

function writeAt(kernel: Kernel, path: string, name: string, text: string): void {
  const { place, disk } = mountedAt(kernel, path);
  const { mount, inode } = place;
  if (mount.options.includes("ro")) throw new Error(`EROFS: ${path}`);
  const device = inode?.device;
  if (device !== undefined && "readonly" in device && device.readonly === true)
    throw new Error(`EROFS: ${path}`);
  if (mount.filesystem.isFrozen) throw new Error(`${path}: frozen`);
  if (device !== undefined) disk.blocks.set(name, text);
  else setFile(kernel, mount.filesystem.root, name, text);
}

function setFile({ tree }: Kernel, directory: Inode, name: string, text: string): void {
  const file = tree.newInode("file", 0o644);
  file.bytes = Buffer.from(text);
  directory.children.set(name, file);
}

function dataOf({ disk }: { readonly disk: Disk }): Pick<Map<string, string>, "get"> {
  return {
    get(name) {
      const file =
        disk.content.kind === "filesystem" ? disk.content.filesystem.root.children.get(name) : undefined;
      return file === undefined ? disk.blocks.get(name) : Buffer.from(file.bytes).toString();
    },
  };
}

function imageAt(kernel: Kernel, path: string): FakeImage {
  const disk = kernel.tree.walk(path, { follow: true })?.inode?.disk;
  if (disk === undefined) throw new Error(`${path} is no image`);
  return {
    get content() {
      const { content } = disk;
      return content.kind === "filesystem" ? { kind: content.kind, type: content.filesystem.type } : content;
    },
    set content(content) {
      disk.content =
        content.kind === "filesystem"
          ? {
              kind: content.kind,
              filesystem: kernel.tree.newFilesystem(content.type, "0:0", disk.sizeBytes, disk),
            }
          : content;
    },
    get fsBytes() {
      return BigInt(disk.content.kind === "filesystem" ? disk.content.filesystem.sizeBytes : 0);
    },
    get data() {
      return {
        ...dataOf({ disk }),
        set(name: string, text: string) {
          if (disk.content.kind === "filesystem") setFile(kernel, disk.content.filesystem.root, name, text);
          else disk.blocks.set(name, text);
          return new Map();
        },
      };
    },
    set data(data) {
      disk.blocks = data as Map<string, string>;
    },
    get everMounted() {
      return disk.everMounted;
    },
    set everMounted(everMounted) {
      disk.everMounted = everMounted;
    },
    get isBroken() {
      return disk.isBroken;
    },
    set isBroken(isBroken) {
      disk.isBroken = isBroken;
    },
  };
}

function makePath(kernel: Kernel, path: string): void {
  path.split("/").reduce((parent, step) => {
    const at = step === "" ? parent : `${parent}/${step}`;
    if (at !== "" && kernel.tree.walk(at, { follow: false })?.inode === undefined)
      putIn(kernel, at, kernel.tree.newInode("directory", 0o755));
    return at;
  }, "");
}

function putIn({ tree }: Kernel, path: string, inode: Inode): void {
  const place = tree.walk(path, { follow: false });
  if (place === undefined) throw new Error(`${path}: no directory above it`);
  place.parent.children.set(place.name, inode);
}

/** The machine's own directories were there before any test. */
const OF_MACHINE = ["/dev", "/proc", "/sys", "/tmp", "/var"];

function namesBelow({ tree }: Kernel, directory: string): readonly string[] {
  const names: string[] = [];
  const visit = (inode: Inode, path: string): void => {
    for (const [name, child] of inode.children) {
      const at = `${path}/${name}`;
      if (OF_MACHINE.includes(at)) continue;
      names.push(at);
      visit(child, at);
    }
  };
  const place = tree.walk(directory, { follow: false });
  const inode = directory === "" ? place?.inode : place?.parent.children.get(place.name);
  if (inode !== undefined) visit(inode, directory);
  return names.sort();
}

function pathOf({ tree }: Kernel, filesystem: Filesystem): string {
  return tree.mounts.find((mount) => mount.filesystem === filesystem)?.path ?? "nowhere any more";
}
