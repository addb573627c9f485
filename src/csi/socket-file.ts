import { chmodSync, closeSync, lstatSync, openSync, constants, unlinkSync } from "node:fs";
import { connect, type Server } from "node:net";
import { basename, dirname } from "node:path";
import { isMainThread } from "node:worker_threads";
import { CsiError } from "./errors.ts";

/** A socket file that belongs to a server of ours. */
export interface SocketFile {
  /** Stops accepting. Removes the file, unless somebody has put another one in its place, or the disk does not let it. */
  close(): void;
}

/**
 * Binds `server` to `path`. A file left behind by a dead process is removed first; one that somebody answers on is
 * not, and neither is anything that is no socket. The file has `mode` from the first moment it is there.
 */
export async function bindSocket(server: Server, path: string, mode: number): Promise<SocketFile> {
  await removeStale(path);
  const folder = openFolder(path);
  try {
    await listen(server, folder.nameOf(basename(path)));
    chmodSync(path, mode);
  } catch (error) {
    folder.close();
    server.close();
    throw error;
  }
  const ours = identityOf(path);
  return {
    close() {
      folder.close();
      server.close();
      if (ours === undefined || identityOf(path) !== ours) return;
      try {
        unlinkSync(path);
      } catch {
        // A disk that failed keeps it; whoever binds next removes it, and the rest of a stop must not wait for that.
      }
    },
  };
}

/** Refuses, or leaves nothing at `path`. */
async function removeStale(path: string): Promise<void> {
  const kind = kindOf(path);
  if (kind === "absent") return;
  if (kind === "other") {
    throw new CsiError(
      "FAILED_PRECONDITION",
      `listen on ${path}: a file that is no socket is in the way; move it away`,
    );
  }
  if (await answers(path)) {
    throw new CsiError(
      "FAILED_PRECONDITION",
      `listen on ${path}: another process answers there; stop it first`,
    );
  }
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

export function kindOf(path: string): "absent" | "socket" | "other" {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "absent";
  return stat.isSocket() ? "socket" : "other";
}

/** Only a refused connection proves that nobody is there; a full backlog or missing rights do not. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", ({ code }: NodeJS.ErrnoException) =>
      resolve(code !== "ECONNREFUSED" && code !== "ENOENT"),
    );
  });
}

/**
 * When Node closes a listening socket it unlinks the path it was bound to, whoever's file is there by then: a driver
 * that stops late would take the socket of its successor away. So on Linux we bind by way of an open folder, and close
 * that folder first: the path Node remembers leads nowhere, and removing the file is left to us.
 */
function openFolder(path: string): { nameOf(file: string): string; close(): void } {
  if (process.platform !== "linux") return { nameOf: () => path, close: () => undefined };
  let fd: number | undefined = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return {
    nameOf: (file) => `/proc/self/fd/${fd ?? -1}/${file}`,
    close() {
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
    },
  };
}

function listen(server: Server, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      resolve();
    });
    // The file is made inside listen(), before it returns; a thread cannot change the mask of its process.
    const mask = isMainThread ? process.umask(0o077) : undefined;
    try {
      server.listen(name);
    } finally {
      if (mask !== undefined) process.umask(mask);
    }
  });
}

function identityOf(path: string): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  // The time as well: a file system may give the number of a removed file to the next one.
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}:${stat.birthtimeNs}`;
}
