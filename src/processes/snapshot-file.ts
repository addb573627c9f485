import { open, readdir, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { systemCode } from "../kube/config/world.ts";
import { ProcessError } from "./errors.ts";
import { decodeSnapshot, type SnapshotContent } from "./snapshot-format.ts";

/** Lines are gathered up to this before they are written: 500 objects of 2 kB a system call. */
const WRITE_CHARS = 2 ** 20;
const READ_BYTES = 2 ** 20;

/**
 * Writes a file for its owner alone that is there whole or not at all, whenever this process is killed: a draft beside it,
 * synced, then renamed. `replace` says whether a file of that name may go.
 */
export async function writeSnapshotFile(
  file: string,
  lines: Iterable<string>,
  { replace }: { readonly replace: boolean },
): Promise<number> {
  const path = resolve(file);
  const draft = `${path}.${process.pid}.partial`;
  try {
    await checkTarget(path, replace);
    await removeAbandoned(path);
    const bytes = await writeDraft(draft, lines);
    await checkTarget(path, replace);
    await rename(draft, path);
    await syncPath(dirname(path));
    return bytes;
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error instanceof ProcessError ? error : cannot("write", path, error);
  }
}

/** Reads all of it and checks all of it. */
export async function readSnapshotFile(
  file: string,
): Promise<{ readonly content: SnapshotContent; readonly sizeBytes: number }> {
  const path = resolve(file);
  try {
    const handle = await open(path, "r");
    try {
      const { size } = await handle.stat();
      return { content: await decodeSnapshot(path, chunksOf(handle)), sizeBytes: size };
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw error instanceof ProcessError ? error : cannot("read", path, error);
  }
}

/** Each is valid until the next is asked for. */
async function* chunksOf(handle: FileHandle): AsyncIterable<Uint8Array> {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

/** What was written to a file, or which files a directory has, survives the machine. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function checkTarget(path: string, replace: boolean): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  });
  if (found === undefined) return;
  if (found.isDirectory()) throw refused(path, "it is a directory; name a file in it");
  if (!replace)
    throw refused(path, "it is there already; choose another name, or replace it with --overwrite");
}

/** Drafts of processes that were killed; they hold keys, and nobody else will remove them. */
async function removeAbandoned(path: string): Promise<void> {
  const prefix = `${basename(path)}.`;
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(prefix)) continue;
    const pid = /^(\d+)\.partial$/.exec(name.slice(prefix.length))?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) await rm(join(dirname(path), name), { force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

async function writeDraft(draft: string, lines: Iterable<string>): Promise<number> {
  await rm(draft, { force: true });
  const handle = await open(draft, "wx", 0o600);
  try {
    let [waiting, bytes] = ["", 0];
    for (const line of lines) {
      waiting += line;
      if (waiting.length < WRITE_CHARS) continue;
      bytes += Buffer.byteLength(waiting);
      await handle.appendFile(waiting);
      waiting = "";
    }
    await handle.appendFile(waiting);
    await handle.sync();
    return bytes + Buffer.byteLength(waiting);
  } finally {
    await handle.close();
  }
}

function refused(path: string, why: string): ProcessError {
  return new ProcessError("BadFile", `cannot write snapshot ${path}: ${why}`);
}

function cannot(what: "read" | "write", path: string, error: unknown): ProcessError {
  const code = systemCode(error);
  const why = PROBLEMS[code ?? ""] ?? code ?? String(error);
  return new ProcessError("BadFile", `cannot ${what} snapshot ${path}: ${why}`, { cause: error });
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "no such file or directory",
  ENOTDIR: "a file is in the way",
  EISDIR: "it is a directory",
  EACCES: "permission denied",
  EPERM: "permission denied",
  ENOSPC: "the disk is full; nothing is left of the attempt",
  EROFS: "the file system is read-only",
};
