import { readdir, readFile, stat } from "node:fs/promises";
import { numberOf } from "./linux-files.ts";

/** A message has room for a few, and each process found costs a look at all of its open files. */
const HOLDERS_MAX = 3;

/**
 * Processes that have a block device open, as `cat (4711)`, for messages: nothing may be decided by it, because
 * processes of another container may be out of sight and a look takes time.
 */
export async function holdersOf(deviceNumber: string): Promise<readonly string[]> {
  const holders: string[] = [];
  for (const pid of (await names("/proc")).filter((name) => /^\d+$/.test(name))) {
    if (holders.length === HOLDERS_MAX) break;
    if (await hasOpen(pid, deviceNumber)) holders.push(`${await commandOf(pid)} (${pid})`);
  }
  return holders;
}

async function hasOpen(pid: string, deviceNumber: string): Promise<boolean> {
  for (const fd of await names(`/proc/${pid}/fd`)) {
    const found = await stat(`/proc/${pid}/fd/${fd}`, { bigint: true }).catch(() => undefined);
    if (found?.isBlockDevice() === true && numberOf(found.rdev) === deviceNumber) return true;
  }
  return false;
}

async function names(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}

async function commandOf(pid: string): Promise<string> {
  return (await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "a process")).trim();
}
