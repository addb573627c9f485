import type { Clock } from "../../base/clock.ts";
import { HostError, type Host, type ProgramResult } from "../host.ts";
import { createMemoryFiles } from "./files.ts";
import { addDevice, createMemoryDevices, createMemoryMounts, removeDevice } from "./mounts.ts";
import { createMemoryProcesses, Processes, type SimProcessSketch } from "./processes.ts";
import { Tree } from "./tree.ts";

/** Answers for a program that the simulated machine has installed. */
export type SimProgram = (args: readonly string[], stdin: string) => ProgramResult | Promise<ProgramResult>;

/**
 * A machine in memory that keeps the contract of the real one. What an agent does to it survives the agent: hand the
 * same machine to the next one, as after a restart; `reboot` loses what a kernel loses.
 */
export interface MemoryHost extends Host {
  /** A block device below /dev, blank. */
  addDevice(path: string, sizeBytes: number): void;
  removeDevice(path: string): void;
  growDevice(path: string, sizeBytes: number): void;
  /** `mkfs` by somebody else. */
  addProgram(name: string, program: SimProgram): void;
  /** Whoever touches a path at or below this mount point hears nothing until his deadline. */
  hang(mountPath: string): void;
  /** The server or the device behind this mount is gone: ENOTCONN. */
  breakMount(mountPath: string): void;
  heal(mountPath: string): void;
  /** A process keeps something open there: it cannot be unmounted, nor opened exclusively. */
  hold(path: string): void;
  release(path: string): void;
  /** A process that lives on whatever becomes of its pod; answers its pid. */
  startProcess(sketch: SimProcessSketch): number;
  endProcess(pid: number): void;
  /** Mounts, loop devices and their faults go; files on disks stay. */
  reboot(): void;
  /** Every path with its kind, and every mount, sorted: what two machines are compared by. */
  describe(below: string): readonly string[];
}

export function createMemoryHost({ clock }: { readonly clock: Clock }): MemoryHost {
  const tree = new Tree();
  const held = new Set<string>();
  const processes = new Processes(tree);
  const programs = new Map<string, SimProgram>();
  const files = createMemoryFiles(tree, clock);
  for (const path of ["/dev", "/tmp", "/proc", "/var/lib"]) makePath(tree, path);
  return {
    files,
    mounts: createMemoryMounts(tree, clock, held),
    devices: createMemoryDevices(tree, held),
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
    endProcess: (pid) => void processes.all.delete(pid),
    addDevice(path, sizeBytes) {
      const deviceNumber = `8:${16 * tree.devices.size}`;
      addDevice(tree, path, { deviceNumber, sizeBytes, filesystem: undefined });
    },
    removeDevice: (path) => removeDevice(tree, path),
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
    hold: (path) => void held.add(path),
    release: (path) => void held.delete(path),
    reboot() {
      processes.all.clear();
      tree.mounts.splice(1);
      for (const faults of [tree.hung, tree.broken, held]) faults.clear();
      for (const [path, device] of tree.devices) if (device.backing !== undefined) removeDevice(tree, path);
    },
    describe: (below) => describeTree(tree, below),
  };
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
