import { lstat, mkdir, rmdir } from "node:fs/promises";
import { systemCode } from "../../kube/config/world.ts";
import { ProcessError } from "../errors.ts";

/**
 * A folder for sockets, for us alone. One that is there already is taken only if it is just that: in the temporary directory
 * somebody else may have been faster, and a data directory may have had a `run` of its own. Nothing in it is removed: a
 * server takes away the stale socket at its own path, and no other file is ours to judge.
 */
export async function openSocketFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
    const found = await lstat(path);
    const isOurs = process.getuid === undefined || found.uid === process.getuid();
    if (found.isDirectory() && isOurs && (found.mode & 0o077) === 0) return;
    throw new ProcessError(
      "BadDataDir",
      `${path} is in the way: sockets need a folder that only this user can enter (mode 0700); choose another place with --data-dir`,
    );
  }
}

/** Gone if empty; with something in it that we did not put there, it stays. */
export async function closeSocketFolders(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await rmdir(path).catch((error: unknown) => {
      if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(systemCode(error) ?? "")) throw error;
    });
  }
}
