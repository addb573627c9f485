import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { systemCode } from "../kube/config/world.ts";
import { describeDiskProblem, isFull } from "./disk-problems.ts";
import { ProcessError } from "./errors.ts";

/** Where a process keeps what must survive it. Files hold keys, so all of them are for their owner alone. */
export interface DataDirectory {
  readonly path: string;
  /** Undefined if there is no such file. */
  read(name: string): Promise<string | undefined>;
  /** Mode 0600, complete or not at all: a reader never sees half of it, whenever the machine stops. */
  write(name: string, text: string): Promise<void>;
  /**
   * The same for a file that is made anew at every start, which on a full disk is written over what is there: a start must
   * not fail for that, and half of it would be replaced by the next.
   */
  rewrite(name: string, text: string): Promise<void>;
}

/**
 * Makes the directory, with mode 0700, if it is not there. The mode of one that is there already is its
 * owner's decision: it may be a folder that others use too, and no file of ours depends on it.
 */
export async function openDataDirectory(path: string): Promise<DataDirectory> {
  const root = resolve(path);
  await attempt(root, "create", () => makeDirectory(root));
  await attempt(root, "create", () => makeDirectory(join(root, "pki")));
  return {
    path: root,
    read: (name) => attempt(join(root, name), "read", () => readIfThere(join(root, name))),
    write: (name, text) => attempt(join(root, name), "write", () => replaceFile(join(root, name), text)),
    rewrite: (name, text) => attempt(join(root, name), "write", () => rewriteFile(join(root, name), text)),
  };
}

/**
 * With parents, one by one: asked for all of them at once on a disk that is full or read-only, node says ENOENT of a
 * folder that nobody asked for (v20.20).
 */
export async function makeDirectory(path: string, mode = 0o700): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" && dirname(path) !== path) {
      await makeDirectory(dirname(path), mode);
      await mkdir(path, { recursive: true, mode });
    } else if (!(await isDirectory(path))) throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = await open(draft, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function rewriteFile(path: string, text: string): Promise<void> {
  if ((await readIfThere(path)) === text) return;
  try {
    await replaceFile(path, text);
  } catch (error) {
    if (!isFull(error)) throw error;
    const file = await open(path, "r+").catch(() => Promise.reject(error as Error));
    try {
      await file.truncate(0);
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  }
}

/** A rename is in the directory, which may reach the disk after files that were written later. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function attempt<T>(
  path: string,
  what: "create" | "read" | "write",
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const why = await explain(path, error);
    throw new ProcessError(
      "BadDataDir",
      `cannot ${what} ${path}: ${why}; choose another place with --data-dir`,
      {
        cause: error,
      },
    );
  }
}

async function explain(path: string, error: unknown): Promise<string> {
  const code = systemCode(error) ?? String(error);
  if (code !== "ENOTDIR" && code !== "EEXIST") return describeDiskProblem(dirname(path), error);
  return (await isDirectory(path)) ? "it is a directory" : "a file is in the way";
}
