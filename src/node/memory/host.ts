import type { Clock } from "../../base/clock.ts";
import { HostError, type Host, type ProgramResult } from "../host.ts";
import { createMemoryFiles } from "./files.ts";
import { createKernel, type Kernel } from "./kernel.ts";
import { addDevice, createMemoryDevices, createMemoryMounts, removeDevice } from "./mounts.ts";
import { newDisk, type Disk } from "./disks.ts";
import { powerOff, type PowerLoss, type PowerOff } from "./power.ts";
import { createMemoryProcesses, type SimProcessSketch } from "./processes.ts";
import { openDeviceIn, type OpenDevice } from "./open-device.ts";
import type { Device, Inode, Tree } from "./tree.ts";

/** Answers for a program that the simulated machine has installed. */
export type SimProgram = (args: readonly string[], stdin: string) => ProgramResult | Promise<ProgramResult>;

/**
 * A machine in memory that keeps the contract of the real one. What an agent does to it survives the agent: hand the
 * same machine to the next one, as after a restart; `reboot` loses what a kernel loses.
 */
export interface MemoryHost extends Host {
  /** The machine itself, for what else runs on it. */
  readonly tree: Tree;
  /** A block device below /dev, blank, with what the kernel says of it below /sys. */
  addDevice(path: string, sizeBytes: number, identity?: { readonly wwid: string }): void;
  removeDevice(path: string): void;
  /** After a boot the kernel may name its disks in another order: each disk gets the name it is mapped to. */
  renameDevices(names: ReadonlyMap<string, string>): void;
  growDevice(path: string, sizeBytes: number): void;
  /** `mkfs` by somebody else. */
  addProgram(name: string, program: SimProgram): void;
  /** Whoever touches a path at or below this mount point hears nothing until his deadline. */
  hang(mountPath: string): void;
  /** The server or the device behind this mount is gone: ENOTCONN. */
  breakMount(mountPath: string): void;
  heal(mountPath: string): void;
  /** The filesystem at this path has met an error: it can be read, and written no more until it is mounted anew. */
  failFilesystem(path: string): void;
  /** Opens a block device, by its node or by what it is bound over; see `OpenDevice`. */
  openDevice(path: string, options?: { readonly inContainer: boolean }): OpenDevice;
  /** A process keeps something open there: it cannot be unmounted, nor opened exclusively. */
  hold(path: string): void;
  release(path: string): void;
  /** A process that lives on whatever becomes of its pod; answers its pid. */
  startProcess(sketch: SimProcessSketch): number;
  endProcess(pid: number): void;
  /** Mounts, loop devices, processes and their faults go; files on disks stay, all that was written. */
  reboot(options?: PowerOff): void;
  /**
   * The power fails: a reboot by which files, filesystems on disks and images, and raw devices may lose what nobody had
   * synced. Answers the disks of which that is so.
   */
  crash(options?: PowerLoss): readonly Disk[];
  /** syncfs(2) of the filesystem at a path: what was written to it survives a crash, as after an unmount. */
  sync(path: string): void;
  /** Every path with its kind, and every mount, sorted: what two machines are compared by. */
  describe(below: string): readonly string[];
  /** What other views of the same machine work on, such as that of a CSI driver. */
  readonly kernel: Kernel;
}

export function createMemoryHost({ clock }: { readonly clock: Clock }): MemoryHost {
  const kernel = createKernel(() => clock.now());
  const { tree, held, processes } = kernel;
  const programs = new Map<string, SimProgram>();
  const files = createMemoryFiles(tree, clock);
  for (const path of ["/dev", "/tmp", "/proc", "/var/lib"]) makePath(tree, path);
  return {
    tree,
    files,
    kernel,
    mounts: createMemoryMounts(kernel, clock),
    devices: createMemoryDevices(kernel, kernel),
    programs: {
      async run(program, args, { stdin = "", signal }) {
        signal?.throwIfAborted();
        const run = programs.get(program);
        if (run === undefined) throw new HostError("NoTool", `${program} is not installed`);
        return run(args, stdin);
      },
    },
    processes: createMemoryProcesses(tree, processes),
    startProcess: (sketch) => processes.start(sketch),
    endProcess: (pid) => processes.end(pid),
    addDevice(path, sizeBytes, identity = { wwid: "" }) {
      const deviceNumber = `8:${16 * tree.devices.size}`;
      const device = {
        deviceNumber,
        sizeBytes,
        disk: newDisk(sizeBytes),
        openers: 0,
        wwid: identity.wwid,
      };
      addDevice(tree, path, device);
      showDevice(tree, path, device);
    },
    removeDevice(path) {
      hideDevice(tree, path);
      removeDevice(tree, path);
    },
    renameDevices(names) {
      const all = [...names].flatMap(([from, to]) => {
        const device = tree.devices.get(from);
        return device === undefined ? [] : [{ device, from, to }];
      });
      for (const { from } of all) {
        hideDevice(tree, from);
        removeDevice(tree, from);
      }
      for (const { device, to } of all) {
        addDevice(tree, to, device);
        showDevice(tree, to, device);
      }
    },
    growDevice(path, sizeBytes) {
      const device = tree.devices.get(path);
      if (device !== undefined) device.sizeBytes = sizeBytes;
    },
    addProgram: (name, program) => void programs.set(name, program),
    hang: (mountPath) => void tree.hung.add(mountPath),
    breakMount: (mountPath) => void tree.broken.add(mountPath),
    heal(mountPath) {
      tree.hung.delete(mountPath);
      tree.broken.delete(mountPath);
    },
    failFilesystem(path) {
      const filesystem = tree.walk(path, { follow: true })?.mount.filesystem;
      if (filesystem !== undefined) tree.failFilesystem(filesystem);
    },
    openDevice: (path, options) => openDeviceIn(kernel, path, options),
    hold: (path) => void held.add(path),
    release: (path) => void held.delete(path),
    reboot: ({ below = "/" } = {}) => void powerOff(kernel, below),
    crash: (loss = {}) => powerOff(kernel, loss.below ?? "/", loss),
    sync: (path) => tree.walk(path, { follow: true })?.mount.filesystem.unsynced.syncAll(),
    describe: (below) => describeTree(tree, below),
  };
}

/** What the kernel shows of a disk: which device has its number, and its own name where it has one. */
function showDevice(tree: Tree, path: string, { deviceNumber, wwid = "" }: Device): void {
  const name = path.slice("/dev/".length);
  if (name.includes("/")) return;
  makePath(tree, `/sys/block/${name}/${name.startsWith("dm-") ? "dm" : "device"}`);
  makePath(tree, "/sys/dev/block");
  put(
    tree,
    `/sys/dev/block/${deviceNumber}`,
    tree.newInode("symlink", 0o777, { linkTarget: `/sys/block/${name}` }),
  );
  if (wwid === "") return;
  const file = tree.newInode("file", 0o444);
  file.bytes = Buffer.from(name.startsWith("dm-") ? `mpath-${wwid}\n` : `naa.${wwid.slice(1)}\n`);
  put(tree, `/sys/block/${name}/${name.startsWith("dm-") ? "dm/uuid" : "device/wwid"}`, file);
}

function hideDevice(tree: Tree, path: string): void {
  const number = tree.devices.get(path)?.deviceNumber ?? "";
  for (const one of [`/sys/block/${path.slice("/dev/".length)}`, `/sys/dev/block/${number}`]) {
    const place = tree.walk(one, { follow: false });
    place?.parent.children.delete(place.name);
  }
}

function put(tree: Tree, path: string, inode: Inode): void {
  const place = tree.walk(path, { follow: false });
  place?.parent.children.set(place.name, inode);
}

function makePath(tree: Tree, path: string): void {
  let made = "";
  for (const step of path.split("/").filter((one) => one !== "")) {
    made += `/${step}`;
    const place = tree.walk(made, { follow: true });
    if (place !== undefined && place.inode === undefined)
      place.parent.children.set(place.name, tree.newInode("directory", 0o755));
  }
}

function describeTree(tree: Tree, below: string): readonly string[] {
  const lines: string[] = [];
  const visit = (path: string): void => {
    const place = tree.walk(path, { follow: false });
    if (place?.inode === undefined) return;
    const mounted = tree.topAt(path);
    const mount = mounted === undefined ? "" : ` mounted ${mounted.source}:${mounted.rootPath}`;
    lines.push(`${path} ${place.inode.kind}${mount}`);
    for (const name of [...place.inode.children.keys()].sort()) visit(`${path}/${name}`);
  };
  visit(below);
  return lines;
}
