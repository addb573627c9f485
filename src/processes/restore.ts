import { mkdir, readdir, realpath, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import { fillLmdbStore, type StoreContent } from "../apiserver/store/lmdb-snapshot.ts";
import { StoreError } from "../apiserver/store/store.ts";
import { systemCode } from "../kube/config/world.ts";
import { ProcessError } from "./errors.ts";
import { lockDirectory, LOCK_FILE } from "./lock.ts";
import { readSnapshotFile, syncPath } from "./snapshot-file.ts";
import type { SnapshotFile } from "./snapshot-format.ts";

export interface RestoreOptions {
  readonly file: string;
  /** Not there yet, or empty. */
  readonly dataDir: string;
}

export interface Restored {
  readonly dataDir: string;
  readonly objects: number;
  /** Of the snapshot. */
  readonly revision: number;
  /** Where the restored store goes on. */
  readonly startRevision: number;
}

/**
 * Makes a data directory from a snapshot: whole or not at all, whenever this process is killed. It is filled under the
 * name `DIR.partial`, synced, then renamed; a lock inside keeps a second restore away. What a killed one left
 * behind is removed by the next.
 */
export async function restoreSnapshot(
  { clock }: { readonly clock: Clock },
  { file, dataDir }: RestoreOptions,
): Promise<Restored> {
  const { content } = await readSnapshotFile(file);
  return makeDataDirectory(
    { clock },
    { ...content, writtenAtMs: Date.parse(content.header.createdAt) },
    dataDir,
  );
}

/** What a data directory is made from. */
export interface DataContent extends StoreContent {
  readonly files: readonly SnapshotFile[];
  /** When the objects were last known to be current. */
  readonly writtenAtMs: number;
}

export async function makeDataDirectory(
  { clock }: { readonly clock: Clock },
  content: DataContent,
  dataDir: string,
): Promise<Restored> {
  const directory = await realPathOf(resolve(dataDir));
  await checkEmpty(directory);
  const startRevision = revisionAfter(content.revision, clock.wall().getTime() - content.writtenAtMs);
  try {
    await makeDirectory(directory, (draft) => fill(draft, content, startRevision));
  } catch (error) {
    throw explain(directory, error);
  }
  return { dataDir: directory, objects: content.objects.length, revision: content.revision, startRevision };
}

/** The store commits 40 a millisecond, with 64 writers at once. */
const WRITES_PER_MS = 100;
/** What is added at least, for clocks that were set back. */
const REVISIONS_MIN = 1_000_000_000;

/**
 * Where to go on after a snapshot of `revision`: past everything that the lost server may have told its clients since. A
 * client that comes back with one of those revisions then gets 410 and lists again, instead of the writes that would
 * take the same numbers. Revisions are exact up to 2^53, which is enough to restore a snapshot of last year 2,800 times.
 */
export function revisionAfter(revision: number, ageMs: number): number {
  return revision + REVISIONS_MIN + WRITES_PER_MS * Math.max(0, Math.ceil(ageMs));
}

async function makeDirectory(directory: string, fillIn: (draft: string) => Promise<void>): Promise<void> {
  const draft = `${directory}.partial`;
  await mkdir(dirname(directory), { recursive: true, mode: 0o700 });
  await mkdir(draft, { recursive: true, mode: 0o700 });
  const lock = await lockDirectory(draft);
  try {
    for (const name of await readdir(draft)) {
      if (name !== LOCK_FILE) await rm(join(draft, name), { recursive: true });
    }
    await fillIn(draft);
    await rename(draft, directory);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
  // It moved with the directory, and has kept servers away so far.
  await lock.release();
  await rm(join(directory, LOCK_FILE), { force: true });
  await syncPath(directory);
  await syncPath(dirname(directory));
}

async function fill(draft: string, content: DataContent, startRevision: number): Promise<void> {
  const [store, pki] = [join(draft, "store"), join(draft, "pki")];
  for (const directory of [store, pki]) await mkdir(directory, { mode: 0o700 });
  for (const { name, text } of content.files) {
    await writeFile(join(draft, name), text, { mode: 0o600, flag: "wx" });
  }
  await fillLmdbStore(store, content, { startRevision, writtenAtMs: content.writtenAtMs });
  for (const directory of [store, pki]) {
    for (const name of await readdir(directory)) await syncPath(join(directory, name));
    await syncPath(directory);
  }
  await syncPath(draft);
}

/** The directory behind a link, so that a rename replaces that and not the link. */
async function realPathOf(directory: string): Promise<string> {
  try {
    return await realpath(directory);
  } catch {
    return directory;
  }
}

async function checkEmpty(directory: string): Promise<void> {
  const names = await readdir(directory).catch((error: unknown): string[] => {
    if (systemCode(error) === "ENOENT") return [];
    throw explain(directory, error);
  });
  if (names.length === 0) return;
  // Whoever runs there is named; that is the more useful answer.
  if (names.includes(LOCK_FILE)) await (await lockDirectory(directory)).release();
  throw notEmpty(directory);
}

function notEmpty(directory: string): ProcessError {
  return refused(
    directory,
    `it is not empty; move it away (mv ${directory} ${directory}.old) or choose another with --data-dir (of a repair: --to)`,
  );
}

function explain(directory: string, error: unknown): unknown {
  if (error instanceof ProcessError) return error;
  if (error instanceof StoreError) return refused(directory, error.message, error);
  const code = systemCode(error) ?? "";
  if (code === "ENOTEMPTY" || code === "EEXIST") return notEmpty(directory);
  const why = PROBLEMS[code];
  return why === undefined ? error : refused(directory, why, error);
}

function refused(directory: string, why: string, cause?: unknown): ProcessError {
  return new ProcessError("BadDataDir", `cannot restore into ${directory}: ${why}`, { cause });
}

const PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  ENOSPC: "the disk is full; nothing is left of the attempt",
  EROFS: "the file system is read-only",
  ENOTDIR: "a file is in the way; choose another with --data-dir",
  EBUSY: "it is a mount point and cannot be replaced as a whole; restore into a directory below it",
  EXDEV: "it is a mount point and cannot be replaced as a whole; restore into a directory below it",
};
