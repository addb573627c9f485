import { isAtOrBelow } from "../mount-table.ts";
import { filesystemOn } from "./disks.ts";
import type { Kernel } from "./kernel.ts";
import type { LoopDevice, Loops } from "./loops.ts";
import type { Filesystem, Mounted } from "./tree.ts";

/**
 * What a machine loses with its power. `below` is "/", or the root directory of one of several nodes that share the
 * machine: then only processes, mounts and loop devices go that this node has by paths below it. What has no such path
 * stays, such as the device of a raw volume that is staged and published nowhere.
 */
export function powerOff(
  kernel: Kernel,
  below: string,
  { keepsUnsynced }: { readonly keepsUnsynced: boolean },
): void {
  const { tree, loops, processes, locks } = kernel;
  const isGone = (path: string) => isAtOrBelow(path, below);
  const mounts = tree.mounts.filter(({ path }) => path !== "/" && isGone(path));
  const kept = tree.mounts.filter((mount) => !mounts.includes(mount));
  const filesystems = lostBy(below === "/" ? tree.filesystemsInUse() : mounts.map(of), kept);
  const devices = below === "/" ? [] : devicesOf(loops, { filesystems, mounts, kept, isGone });

  if (!keepsUnsynced)
    for (const filesystem of filesystems) filesystem.root = filesystem.durable ?? filesystem.root;
  for (const { pid, paths } of [...processes.all.values()])
    if (below === "/" || paths.some(isGone)) processes.end(pid);
  for (const mount of mounts.reverse()) tree.removeMount(mount);
  for (const filesystem of filesystems.filter(({ isFrozen }) => isFrozen)) {
    filesystem.isFrozen = false;
    tree.unuse(filesystem);
  }
  for (const paths of [tree.hung, tree.broken, kernel.held])
    for (const path of paths) if (below === "/" || isGone(path)) paths.delete(path);

  for (const device of devices) loops.detach(device);
  if (below !== "/") return;
  locks.clear();
  loops.reboot();
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
