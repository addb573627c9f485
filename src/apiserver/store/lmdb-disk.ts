import { chmodSync, closeSync, existsSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { PageSource } from "./lmdb-source.ts";
import { StoreError } from "./store.ts";

/** Files and directories of a store, as the file system knows them. */

/** Pages are read in pieces of this size: a scan of neighbours then asks the kernel once for 64 of them. */
const READ_BYTES = 256 * 1024;

export function dataFile(directory: string): string {
  return join(directory, "data.mdb");
}

/** Beside the data: who reads which version of it. */
export function lockFile(directory: string): string {
  return join(directory, "lock.mdb");
}

export async function hasStore(directory: string): Promise<boolean> {
  try {
    await stat(dataFile(directory));
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw unusable("open", directory, error);
  }
}

export function dataBytes(directory: string): number {
  return statSync(dataFile(directory)).size;
}

/** Runs `work` on the bytes of the data file, which nobody may be writing. */
export async function withPages<T>(
  directory: string,
  work: (source: PageSource) => T | Promise<T>,
): Promise<T> {
  const path = dataFile(directory);
  const file = openSync(path, "r");
  try {
    return await work({ ...createPageSource(file, path), hasFailedCommit: hasFailureNote(directory) });
  } finally {
    closeSync(file);
  }
}

/** Lets others run who wait for the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function createPageSource(file: number, path: string): Omit<PageSource, "hasFailedCommit"> {
  const sizeBytes = fstatSync(file).size;
  let buffer = Buffer.alloc(READ_BYTES);
  let [start, end] = [0, 0];
  return {
    path,
    sizeBytes,
    read(offset, bytes) {
      if (offset < start || offset + bytes > end) {
        if (bytes > buffer.length) buffer = Buffer.alloc(bytes);
        start = offset;
        end = offset + readFully(file, buffer, offset);
      }
      return buffer.subarray(offset - start, offset - start + bytes);
    },
  };
}

function readFully(file: number, buffer: Buffer, offset: number): number {
  let read = 0;
  while (read < buffer.length) {
    const more = readSync(file, buffer, read, buffer.length - read, offset + read);
    if (more === 0) break;
    read += more;
  }
  return read;
}

/**
 * A commit that fails while it writes its meta page leaves the file in a state that looks like damage, and is none: the
 * commit before it is whole. This note, made by the process that saw the failure, tells the next one which it is.
 */
export function hasFailureNote(directory: string): boolean {
  return existsSync(failureNote(directory));
}

/** As well as the disk allows. */
export async function noteFailure(directory: string): Promise<void> {
  const text = "The last commit failed; the next one that succeeds removes this file.\n";
  await writeFile(failureNote(directory), text, { mode: 0o600, flush: true }).catch(() => undefined);
}

/** Whether it is gone; a note too many does no harm. */
export async function removeFailureNote(directory: string): Promise<boolean> {
  return rm(failureNote(directory), { force: true }).then(
    () => true,
    () => false,
  );
}

function failureNote(directory: string): string {
  return join(directory, "commit-failed");
}

/**
 * Makes a directory that is there with all of its content or not at all, whenever the machine stops: filled beside
 * its place, synced, then renamed. What an interrupted attempt left is removed by the next.
 */
export async function makeWhole(directory: string, fill: (draft: string) => Promise<void>): Promise<void> {
  const [parent, draft] = [dirname(directory), `${directory}.partial`];
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o700 });
  try {
    await fill(draft);
    for (const name of await readdir(draft)) await sync(join(draft, name));
    await sync(draft);
    await rename(draft, directory);
    await sync(parent);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

/** For their owner alone: objects include secrets, and a copied directory has the modes somebody's umask gave it. */
export function makePrivate(directory: string): void {
  chmodSync(directory, 0o700);
  chmodSync(dataFile(directory), 0o600);
}

async function sync(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

export function unusable(what: "open" | "make", directory: string, error: unknown): StoreError {
  const why = PROBLEMS[codeOf(error) ?? ""] ?? (error instanceof Error ? error.message : String(error));
  return new StoreError(
    "Unusable",
    `${what} the store ${basename(directory)} in ${dirname(directory)}: ${why}`,
    {
      cause: error,
    },
  );
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

const PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
  ENOTDIR: "a file is in the way",
  EEXIST: "a file is in the way",
  ENOTEMPTY: "other files are in its place",
};
