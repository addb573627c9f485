import { readFile, rmdir, unlink, lstat } from "node:fs/promises";
import { release } from "node:os";
import { basename, dirname, join } from "node:path";
import { HostError, type HostMounts, type MountPoint, type MountRequest, type MountTable } from "./host.ts";
import { errnoOf, failing } from "./linux-errors.ts";
import { formatAndMount } from "./linux-format.ts";
import { lookOrMissing } from "./linux-make.ts";
import type { Probes } from "./linux-probes.ts";
import type { Tools } from "./linux-programs.ts";
import { createMountTable, mountContaining, parseMountInfo, type MountLine } from "./mount-table.ts";
import { together } from "./together.ts";

/** Mounts through `mount` and `umount` of util-linux, looked up in /proc/self/mountinfo, which never hangs. */

const MOUNT_MS_MAX = 120_000;
const UNMOUNT_MS_MAX = 60_000;
/** Mounts at one path that a clean-up takes away; more are left for the next try. */
const LAYERS_MAX = 16;
/** A remount forgets what it is not told again. */
const INHERITED = new Set([
  "ro",
  "nodev",
  "noexec",
  "nosuid",
  "noatime",
  "relatime",
  "nodiratime",
  "strictatime",
]);
const NOT_FOR_REMOUNT = new Set(["bind", "rbind", "remount", "_netdev", "defaults", ""]);

interface Deps {
  readonly probes: Probes;
  readonly tools: Tools;
}

export function createLinuxMounts(deps: Deps): HostMounts {
  const { probes, tools } = deps;
  let noSwap: Promise<boolean> | undefined;

  const run = (program: string, args: readonly string[], doing: string, timeoutMs = MOUNT_MS_MAX) =>
    tools.must(program, args, { timeoutMs, doing });
  // A reading costs as much as there are mounts, and each step of a volume asks several times: together they share it.
  const lines = together(readTable);
  const table = together(async () => createMountTable(await lines()));

  /** As the table spells it: links of the parent followed, the last step not touched. */
  async function spelled(path: string, points: MountTable): Promise<string> {
    if (points.at(path) !== undefined || path === "/") return path;
    const parent = await lookOrMissing<string>(probes, "realPath", dirname(path));
    return parent === undefined ? path : join(parent, basename(path));
  }

  async function mountAt(path: string): Promise<MountPoint | undefined> {
    const points = await table();
    return points.at(await spelled(path, points));
  }

  const isMountPoint = async (path: string) => (await mountAt(path)) !== undefined;

  async function mount(request: MountRequest): Promise<void> {
    const { source, target, type, options, timeoutMs } = request;
    if (type === "") return bind(source, target, options);
    const flags = options.length === 0 ? [] : ["-o", options.join()];
    await run(
      "mount",
      ["-t", type, ...flags, "--", source, target],
      `mount ${source} on ${target}`,
      timeoutMs,
    );
  }

  async function bind(source: string, target: string, options: readonly string[]): Promise<void> {
    const first = options.includes("rbind") ? "--rbind" : "--bind";
    const kept = options.includes("_netdev") ? ["-o", "_netdev"] : [];
    const doing = `bind ${source} to ${target}`;
    await run("mount", [first, ...kept, "--", source, target], doing);
    if (options.every((option) => NOT_FOR_REMOUNT.has(option))) return;
    try {
      await remountBind(target, options);
    } catch (error) {
      // Half of it would be a writable mount where a read-only one was asked for.
      await unmount(target, { lazy: true });
      throw error;
    }
  }

  async function remountBind(path: string, options: readonly string[]): Promise<void> {
    const here = await mountAt(path);
    const inherited = here?.options.filter((option) => INHERITED.has(option)) ?? [];
    const wanted = options.filter((option) => !NOT_FOR_REMOUNT.has(option));
    const all = new Set(["remount", "bind", ...inherited, ...wanted]);
    await run("mount", ["-o", [...all].join(), "--", path], `remount ${path} with ${wanted.join()}`);
  }

  async function unmount(
    path: string,
    { timeoutMs = UNMOUNT_MS_MAX, force = false, lazy = false }: Parameters<HostMounts["unmount"]>[1] = {},
  ): Promise<void> {
    const at = await spelled(path, await table());
    const how = lazy ? ["--lazy"] : [];
    try {
      // Without touching the path: what is mounted there may be dead.
      await run("umount", ["--no-canonicalize", ...how, "--", at], `unmount ${path}`, timeoutMs);
    } catch (error) {
      if (!force || !(error instanceof HostError) || error.code !== "TimedOut") throw error;
      await run("umount", ["--no-canonicalize", "--force", "--", at], `unmount ${path} by force`, timeoutMs);
    }
  }

  return {
    table,
    isMountPoint,
    mount,
    bind,
    async remount(path, options) {
      if (options.includes("bind")) return remountBind(path, options);
      const wanted = options.filter((option) => !NOT_FOR_REMOUNT.has(option));
      await run("mount", ["-o", ["remount", ...wanted].join(), "--", path], `remount ${path}`);
    },
    unmount,
    async cleanUp(path, options) {
      for (let layer = 0; layer < LAYERS_MAX && (await isMountPoint(path)); layer++)
        await unmount(path, options);
      if (await isMountPoint(path)) throw new HostError("Busy", `clean up ${path}: it is still mounted`);
      await failing(`clean up ${path}`, () => removeEmpty(path));
    },
    formatAndMount: (request) => formatAndMount({ tools, probes, mount, table }, request),
    async makeShared(path) {
      const found = await lines();
      const at = await spelled(path, createMountTable(found));
      if (mountContaining(found, at)?.shared === true) return;
      if (!found.some((line) => line.path === at)) await bind(at, at, []);
      await run("mount", ["--make-rshared", "--", at], `share ${path}`);
    },
    supportsNoSwap: () => (noSwap ??= takesNoSwap()),
  };
}

/** An empty directory, an empty file, or a device file: never content. */
async function removeEmpty(path: string): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    if (errnoOf(error) !== "ENOTDIR") throw error;
    const found = await lstat(path);
    if (found.isFile() && found.size > 0)
      throw new HostError("NotEmpty", `clean up ${path}: the file has ${found.size} bytes`, { cause: error });
    await unlink(path);
  }
}

/** Before 5.8 a mount made while the table is read could hide another one. */
const CONSISTENT_SINCE = [5, 8] as const;
const READS_MAX = 10;

async function readTable(): Promise<readonly MountLine[]> {
  const read = () => failing("read the mount table", () => readFile("/proc/self/mountinfo", "utf8"));
  let text = await read();
  for (let reads = 1; !kernelIsAtLeast(...CONSISTENT_SINCE) && reads < READS_MAX; reads++) {
    const again = await read();
    if (again === text) break;
    text = again;
  }
  return parseMountInfo(text);
}

/** tmpfs learned it in 6.4, and refuses it in a user namespace. */
async function takesNoSwap(): Promise<boolean> {
  if (!kernelIsAtLeast(6, 4)) return false;
  const map = await readFile("/proc/self/uid_map", "utf8").catch(() => "");
  return /^\s*0\s+0\s+4294967295\s*$/.test(map);
}

function kernelIsAtLeast(major: number, minor: number): boolean {
  const [isMajor = 0, isMinor = 0] = release()
    .split(".")
    .map((part) => parseInt(part, 10));
  return isMajor > major || (isMajor === major && isMinor >= minor);
}
