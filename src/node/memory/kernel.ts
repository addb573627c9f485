import { Flocks } from "./flock.ts";
import { Loops } from "./loops.ts";
import { Processes } from "./processes.ts";
import { Tree } from "./tree.ts";

/** What one simulated machine is made of; every view of it, the node agent's and a driver's, works on the same. */
export interface Kernel {
  readonly tree: Tree;
  readonly loops: Loops;
  readonly processes: Processes;
  readonly locks: Flocks;
  /** Paths where a process of the host keeps a file open. */
  readonly held: Set<string>;
  readonly storage: Storage;
}

/** The disk that holds image files: when it is full, and what it can do. */
export interface Storage {
  /** Taken by images that are really allocated, given back when they are removed. */
  readonly pool: { freeBytes: bigint; totalBytes: bigint };
  /** How many more files and directories it takes; at 0 nothing can be made, and what is removed gives one back. */
  readonly room: { files: number };
  readonly filesystem: {
    /** Whether it shares blocks between files, as xfs does and ext4 does not. */
    reflink: boolean;
    /** What others do between two parts of a copy. */
    whileCopying?: () => void;
  };
}

export function createKernel(nowMs: () => number): Kernel {
  const tree = new Tree(nowMs);
  const held = new Set<string>();
  const loops = new Loops(tree, held);
  return {
    tree,
    loops,
    held,
    processes: new Processes(tree, loops),
    locks: new Flocks(),
    storage: {
      pool: { freeBytes: 50n << 30n, totalBytes: 100n << 30n },
      room: { files: Infinity },
      filesystem: { reflink: false },
    },
  };
}
