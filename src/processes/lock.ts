import { createHash } from "node:crypto";
import { link, readFile, readlink, symlink, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { systemCode } from "../kube/config/world.ts";
import { describeDiskProblem, isFull } from "./disk-problems.ts";
import { ProcessError } from "./errors.ts";

export interface Lock {
  /** Never fails: on a disk that has become read-only the file stays, and names a process that is about to be gone. */
  release(): Promise<void>;
}

interface LockOptions {
  /** What the user gave the directory with: the way out that the error names. */
  readonly flag?: string;
  readonly me?: number;
}

/** Who holds a lock. A pid alone is not enough: after a restart of the machine it may be anybody's. */
interface Holder {
  readonly pid: number;
  /** When that process started, in the kernel's ticks since boot; empty where the kernel does not say. */
  readonly started: string;
}

/** In the directory that is locked. */
export const LOCK_FILE = "mooring.lock";
/** Somebody else may be removing the same stale lock; each try looks afresh. */
const LOCK_TRIES = 20;

/**
 * One process a data directory. The lock is a file that names its holder, and linking a finished file makes
 * the claim atomic. A lock whose holder is gone (killed, or from before a reboot) is taken over by whoever has the
 * right to remove it: see `removeStale`. Killed at any moment, this leaves nothing that a later start stumbles over.
 */
export async function lockDirectory(
  directory: string,
  { flag = "--data-dir", me = process.pid }: LockOptions = {},
): Promise<Lock> {
  const path = join(directory, LOCK_FILE);
  const claim = `${path}.${me}`;
  await writeClaim(claim, JSON.stringify({ pid: me, started: await startOf(me) } satisfies Holder));
  try {
    for (let attempt = 0; attempt < LOCK_TRIES; attempt++) {
      if (await takes(claim, path)) return { release: () => unlinkIfThere(path).catch(() => undefined) };
      const text = await readIfThere(path);
      const holder = await livingHolder(text);
      if (holder !== undefined) throw inUse(directory, holder.pid, flag);
      if (text !== undefined) await removeStale(path, claim, text);
    }
    throw new ProcessError("DataDirInUse", `cannot lock ${directory}: others are starting on it; try again`);
  } finally {
    await unlinkIfThere(claim);
  }
}

/**
 * On a full disk as a symbolic link that leads nowhere: its text stands in the inode and takes no block. A server has to
 * start there, because deleting objects is a way to make room.
 */
async function writeClaim(claim: string, text: string): Promise<void> {
  try {
    // Never written in place: what a killed process of our number left here may be the very file that is the lock.
    await unlinkIfThere(claim);
    try {
      await writeFile(claim, text, { mode: 0o600, flag: "wx" });
    } catch (error) {
      if (!isFull(error)) throw error;
      await unlinkIfThere(claim);
      await symlink(text, claim);
    }
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "EEXIST") throw error;
    const why = await describeDiskProblem(dirname(claim), error);
    throw new ProcessError("BadDataDir", `cannot lock ${claim}: ${why}`, { cause: error });
  }
}

async function takes(claim: string, path: string): Promise<boolean> {
  try {
    await link(claim, path);
    return true;
  } catch (error) {
    // Without its claim: whoever has the lock made room in the directory. The lock says who that is.
    if (systemCode(error) === "EEXIST" || systemCode(error) === "ENOENT") return false;
    const why = await describeDiskProblem(dirname(path), error);
    throw new ProcessError("BadDataDir", `cannot lock ${path}: ${why}`, { cause: error });
  }
}

/**
 * Removes the lock with this very text, which nobody holds. Without a rule two that see the same stale lock could each
 * remove the other's new one, so the right to remove it is itself a file, named after that text: the guard. If its
 * owner was killed, the next guard in the row gives the right. Guards go after the lock has gone; one that is made
 * again later finds another text under `path`, and gives no right to that.
 */
async function removeStale(path: string, claim: string, text: string): Promise<void> {
  const guards: string[] = [];
  const id = createHash("sha256").update(text).digest("hex").slice(0, 12);
  do {
    guards.push(`${path}.${id}.${guards.length}`);
    if (await takes(claim, guards.at(-1) ?? "")) {
      if ((await readIfThere(path)) === text) await unlink(path);
      for (const guard of guards.reverse()) await unlinkIfThere(guard);
      return;
    }
  } while ((await livingHolder(await readIfThere(guards.at(-1) ?? ""))) === undefined);
}

function inUse(directory: string, pid: number, flag: string): ProcessError {
  return new ProcessError(
    "DataDirInUse",
    `${directory} is used by process ${pid}; stop that one (kill ${pid}) or choose another directory with ${flag}`,
  );
}

/** Throws where a process holds the lock; writes nothing. */
export async function refuseIfHeld(directory: string): Promise<void> {
  const holder = await livingHolder(await readIfThere(join(directory, LOCK_FILE)));
  if (holder !== undefined) throw inUse(directory, holder.pid, "--data-dir");
}

async function livingHolder(text: string | undefined): Promise<Holder | undefined> {
  const holder = parseHolder(text ?? "");
  return holder !== undefined && (await isRunning(holder)) ? holder : undefined;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    // Nothing there, or a link that leads nowhere; see `writeClaim`.
    return readlink(path).catch(() => undefined);
  }
}

function parseHolder(text: string): Holder | undefined {
  try {
    const { pid, started } = JSON.parse(text) as { pid?: unknown; started?: unknown };
    if (typeof pid === "number" && Number.isInteger(pid) && pid > 0)
      return { pid, started: typeof started === "string" ? started : "" };
  } catch {
    // Not one of ours, or cut short: nobody holds it.
  }
  return undefined;
}

async function isRunning({ pid, started }: Holder): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCode(error) !== "EPERM") return false; // EPERM: it runs, as somebody else
  }
  const seen = await lookAt(pid);
  if (seen === undefined) return true;
  // A zombie holds nothing; a container without an init process may keep one for ever.
  return !seen.isDead && (started === "" || seen.started === started);
}

async function startOf(pid: number): Promise<string> {
  return (await lookAt(pid))?.started ?? "";
}

/** What the kernel says of a process; undefined where it does not say. */
async function lookAt(pid: number): Promise<{ isDead: boolean; started: string } | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may hold anything; the state follows it, and starttime is the 20th field from there.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { isDead: /^[ZX]/.test(fields[0] ?? ""), started: fields[19] ?? "" };
  } catch {
    return undefined;
  }
}

async function unlinkIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
  }
}
