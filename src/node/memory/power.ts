import { isAtOrBelow } from "../mount-table.ts";
import type { Random } from "../../base/random.ts";
import { filesystemOn, loseBlocks, type Disk } from "./disks.ts";
import type { Kernel } from "./kernel.ts";
import type { LoopDevice, Loops } from "./loops.ts";
import type { Filesystem, Inode, Mounted, Tree } from "./tree.ts";

export interface PowerOff {
  /** Where several nodes share the machine, the root directory of the one that loses its power. */
  readonly below?: string;
}

export interface PowerLoss extends PowerOff {
  /** What of the unsynced is lost, cut or there all the same; without it all of it is lost. */
  readonly random?: Random;
}

/**
 * What a machine loses with its power. `below` is "/", or the root directory of one of several nodes that share the
 * machine: then only processes, mounts and loop devices go that this node has by paths below it. What has no such path
 * stays, such as the device of a raw volume that is staged and published nowhere. Without `loss` everything that was
 * written is on the disks. Answers the disks that may have lost something.
 */
export function powerOff(kernel: Kernel, below: string, loss?: PowerLoss): readonly Disk[] {
  const { tree, loops, processes, locks } = kernel;
  const isGone = (path: string) => isAtOrBelow(path, below);
  const mounts = tree.mounts.filter(({ path }) => path !== "/" && isGone(path));
  const kept = tree.mounts.filter((mount) => !mounts.includes(mount));
  const filesystems = lostBy(below === "/" ? tree.filesystemsInUse() : mounts.map(of), kept);
  const devices = below === "/" ? [] : devicesOf(loops, { filesystems, mounts, kept, isGone });
  const ended = [...processes.all.values()].filter(({ paths }) => below === "/" || paths.some(isGone));

  const disks = new Set<Disk>();
  if (loss !== undefined) {
    const inContainers = lostBy(
      ended.flatMap(({ keeps }) => keeps.filesystems),
      kept,
    );
    for (const { unsynced, disk } of new Set([...filesystems, ...inContainers])) {
      unsynced.lose({ random: loss.random });
      if (disk !== undefined) disks.add(disk);
    }
    for (const { disk } of below === "/" ? [...loops.attached(), ...tree.devices.values()] : devices)
      if (disk !== undefined) disks.add(disk);
    for (const disk of disks) loseBlocks(disk, loss.random);
    loseFiles(kernel, below, loss);
  } else if (below === "/") tree.topAt("/")?.filesystem.unsynced.syncAll();
  for (const { pid } of ended) processes.end(pid);
  for (const mount of mounts.reverse()) tree.removeMount(mount);
  for (const filesystem of filesystems.filter(({ isFrozen }) => isFrozen)) {
    filesystem.isFrozen = false;
    tree.unuse(filesystem);
  }
  for (const paths of [tree.hung, tree.broken, kernel.held])
    for (const path of paths) if (below === "/" || isGone(path)) paths.delete(path);

  for (const device of devices) loops.detach(device);
  if (below === "/") {
    locks.clear();
    loops.reboot();
  }
  return [...disks];
}

/** Of the machine's own disk. What an image takes of it is counted anew where its name came back or went. */
function loseFiles({ tree, storage }: Kernel, below: string, { random }: PowerLoss): void {
  const root = tree.topAt("/")?.filesystem;
  if (root === undefined) return;
  const of = below === "/" ? undefined : isBelow(tree, below);
  const lost = root.unsynced.lose({ random, ...(of && { of }) });
  const taken = (inode: Inode | undefined) => BigInt(inode?.disk?.allocatedBytes ?? 0);
  for (const { before, after } of lost) storage.pool.freeBytes += taken(after) - taken(before);
}

function isBelow(tree: Tree, path: string): (inode: Inode) => boolean {
  const found = new Set<Inode>();
  const visit = (inode: Inode): void => {
    found.add(inode);
    for (const child of inode.children.values()) visit(child);
  };
  const top = tree.walk(path, { follow: true })?.inode;
  if (top !== undefined) visit(top);
  return (inode) => found.has(inode);
}

const of = ({ filesystem }: Mounted) => filesystem;

/** Those that nobody has by another mount. */
function lostBy(filesystems: readonly Filesystem[], kept: readonly Mounted[]): readonly Filesystem[] {
  const elsewhere = new Set(kept.map(of));
  return [...new Set(filesystems)].filter((filesystem) => !elsewhere.has(filesystem));
}

/** By a filesystem, by a node that is bound there, or by a path there that is behind them: the uppermost first. */
function devicesOf(
  loops: Loops,
  lost: {
    readonly filesystems: readonly Filesystem[];
    readonly mounts: readonly Mounted[];
    readonly kept: readonly Mounted[];
    readonly isGone: (path: string) => boolean;
  },
): readonly LoopDevice[] {
  const bound = new Set(lost.mounts.map(({ root }) => root.device));
  const elsewhere = new Set(lost.kept.map(({ root }) => root.device));
  const isLost = (device: LoopDevice) => {
    const filesystem = filesystemOn(device.disk);
    return (
      (filesystem !== undefined && lost.filesystems.includes(filesystem)) ||
      (bound.has(device) && !elsewhere.has(device)) ||
      lost.isGone(device.backing?.path ?? "")
    );
  };
  const isStacked = ({ backing }: LoopDevice) => backing?.inode.device !== undefined;
  const found = loops.attached().filter(isLost);
  return [...found.filter(isStacked), ...found.filter((device) => !isStacked(device))];
}
