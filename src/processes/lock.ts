import { link, readFile, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../kube/config/world.ts";
import { ProcessError } from "./errors.ts";

export interface Lock {
  release(): Promise<void>;
}

/** Who holds a lock. A pid alone is not enough: after a restart of the machine it may be anybody's. */
interface Holder {
  readonly pid: number;
  /** When that process started, in the kernel's ticks since boot; empty where the kernel does not say. */
  readonly started: string;
}

/** Somebody else may hold the guard for a moment; each try looks afresh. */
const LOCK_TRIES = 20;

/**
 * One process a data directory. The lock is a file that names its holder, and linking a finished file makes
 * the claim atomic. A lock whose holder is gone (killed, or from before a reboot) is taken over, under a
 * second file, the guard: without it two that see the same stale lock could each remove the other's.
 */
export async function lockDirectory(directory: string, me: number = process.pid): Promise<Lock> {
  const path = join(directory, "mooring.lock");
  const claim = `${path}.${me}`;
  await writeFile(claim, JSON.stringify({ pid: me, started: await startOf(me) } satisfies Holder), {
    mode: 0o600,
  });
  try {
    for (let attempt = 0; attempt < LOCK_TRIES; attempt++) {
      if (await takes(claim, path)) return { release: () => unlinkIfThere(path) };
      const holder = parseHolder(await readFile(path, "utf8").catch(() => ""));
      if (holder !== undefined && (await isRunning(holder))) throw inUse(directory, holder.pid);
      await removeStale(path, claim);
    }
    const guard = guardOf(path);
    throw new ProcessError(
      "DataDirInUse",
      `cannot lock ${directory}: ${guard} was left by a start that was killed; remove it if no other start is under way`,
    );
  } finally {
    await unlinkIfThere(claim);
  }
}

async function takes(claim: string, path: string): Promise<boolean> {
  try {
    await link(claim, path);
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST") return false;
    throw new ProcessError("BadDataDir", `cannot lock ${path}: ${systemCode(error) ?? String(error)}`, {
      cause: error,
    });
  }
}

function guardOf(path: string): string {
  return `${path}.guard`;
}

/** Only whoever has the guard may remove a lock that is not its own, after one more look at it. */
async function removeStale(path: string, claim: string): Promise<void> {
  const guard = guardOf(path);
  if (!(await takes(claim, guard))) return;
  try {
    // What is there and stale stays so: its holder is dead, a link cannot replace it, and we have the guard.
    // What is not there may be a new lock by the time we get to it.
    const text = await readFile(path, "utf8").catch(() => undefined);
    if (text !== undefined && !(await isHeld(text))) await unlink(path);
  } finally {
    await unlinkIfThere(guard);
  }
}

function inUse(directory: string, pid: number): ProcessError {
  return new ProcessError(
    "DataDirInUse",
    `${directory} is used by process ${pid}; stop that one (kill ${pid}) or choose another directory with --data-dir`,
  );
}

async function isHeld(text: string): Promise<boolean> {
  const holder = parseHolder(text);
  return holder !== undefined && (await isRunning(holder));
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
