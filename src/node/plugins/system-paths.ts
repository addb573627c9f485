import { isAbsolute, normalize } from "node:path";
import type { Host } from "../host.ts";
import { isAtOrBelow } from "../mount-table.ts";
import type { Paths } from "../paths.ts";

/**
 * Directories of the machine whose files no pod's fsGroup may be given to. A local volume is whatever path its author
 * wrote, and the walk does what it is told: a volume of `/tmp` took the group of every file of everybody in it, one of `/`
 * or `/etc` would take the machine along. Such a volume is mounted; its ownership stays.
 *
 * Not on the list: `/mnt`, `/srv`, `/opt` and `/media`, where disks that are meant as volumes lie.
 */

/** With everything below. */
const TREES = [
  "/bin",
  "/boot",
  "/dev",
  "/etc",
  "/lib",
  "/lib32",
  "/lib64",
  "/proc",
  "/root",
  "/sbin",
  "/sys",
  "/usr",
];
/** Themselves: below them lies what may well be a volume. */
const DIRECTORIES = [
  "/",
  "/home",
  "/run",
  "/tmp",
  "/var",
  "/var/cache",
  "/var/lib",
  "/var/log",
  "/var/spool",
  "/var/tmp",
];

/** The directory of the machine that a path is, or lies in; undefined for one that may be a volume's own. */
export async function systemPathOf(
  {
    host,
    paths,
  }: { readonly host: Pick<Host, "files">; readonly paths: Pick<Paths, "root" | "pods" | "plugins"> },
  path: string,
): Promise<string | undefined> {
  const spelled = normalize(`${path}/`).replace(/(.)\/$/, "$1");
  // The agent's own directory, and whatever it lies in.
  if (isAbsolute(spelled) && isAtOrBelow(paths.root, spelled)) return spelled;
  // The volumes of every pod lie in the last two.
  const trees = [...TREES, paths.pods, paths.plugins];
  const real = (await host.files.realPath(path)) ?? spelled;
  const tree = trees.find((one) => isAtOrBelow(spelled, one) || isAtOrBelow(real, one));
  if (tree !== undefined) return tree;
  // By identity: a second name of it leads there as well.
  const identity = (await host.files.statTarget(path))?.identity;
  for (const one of [...DIRECTORIES, ...trees, paths.root])
    if (spelled === one || (await isSame(host, one, identity))) return one;
  return undefined;
}

async function isSame(
  host: Pick<Host, "files">,
  path: string,
  identity: string | undefined,
): Promise<boolean> {
  if (identity === undefined) return false;
  const other = await host.files.statTarget(path).catch(() => undefined);
  return other?.identity === identity;
}
