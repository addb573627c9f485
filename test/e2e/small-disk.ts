import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { letGoOf } from "./up-world.ts";

/** File systems of some MB, made for one test, which can be filled to the last block. */
export type DiskType = "tmpfs" | "ext4";

export const canMount = process.getuid?.() === 0;

export class SmallDisks {
  readonly #root: string;
  readonly #mounted: string[] = [];

  constructor(root: string) {
    this.#root = root;
  }

  /** Where it is mounted. */
  make(name: string, type: DiskType, megabytes: number): string {
    const disk = join(this.#root, name);
    mkdirSync(disk);
    this.#mounted.push(disk);
    if (type === "tmpfs") run("mount", "-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", disk);
    else {
      run("truncate", "--size", `${megabytes}M`, `${disk}.raw`);
      run("mkfs.ext4", "-q", "-F", "-m", "0", `${disk}.raw`);
      run("mount", "-o", "loop,errors=remount-ro", `${disk}.raw`, disk);
    }
    return disk;
  }

  /** Whatever is mounted below goes too. */
  removeAll(): void {
    for (const disk of this.#mounted.splice(0)) {
      letGoOf(disk);
      spawnSync("umount", [disk]);
      rmSync(`${disk}.raw`, { force: true });
    }
  }
}

/** Leaves so much and not a block more. */
export function fill(disk: string, freeKb: number): void {
  const file = openSync(join(disk, "filler"), "w");
  const left = () => {
    const { bavail, bsize } = statfsSync(disk);
    return bavail * bsize - freeKb * 1024;
  };
  try {
    for (let bytes = left(); bytes > 0; bytes = left())
      writeSync(file, Buffer.alloc(Math.min(bytes, 2 ** 20), 1));
  } catch {
    // Not a byte is left.
  } finally {
    closeSync(file);
  }
}

export function makeRoom(disk: string): void {
  rmSync(join(disk, "filler"));
}

export function run(command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
  return stdout;
}
