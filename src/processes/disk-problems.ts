import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode } from "../kube/config/world.ts";
import { ProcessError } from "./errors.ts";

/** What a disk answers, in words for the person who has to do something about it. */
const PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only; mount it for writing",
  EIO: "the disk failed (input/output error); the kernel's log says more",
};

export function isFull(error: unknown): boolean {
  const code = systemCode(error);
  return code === "ENOSPC" || code === "EDQUOT";
}

/** `directory` is on the disk that said no; a full one is told with what is free of it. */
export async function describeDiskProblem(directory: string, error: unknown): Promise<string> {
  const code = systemCode(error);
  if (isFull(error)) {
    const why = code === "EDQUOT" ? "the quota is used up" : "the disk is full";
    return `${why} (${await freeOf(directory)}); make room on it`;
  }
  return PROBLEMS[code ?? ""] ?? code ?? String(error);
}

/**
 * A start that failed because of the disk below `directory`, as an error for whoever started it. The kernel's own words
 * leave out the path where a file that is open was written to. Anything else is returned as it is.
 */
export async function explainStart(directory: string, error: unknown): Promise<unknown> {
  const code = systemCode(error);
  const isOfDisk = isFull(error) || code === "EROFS" || code === "EIO";
  if (!isOfDisk || !(error instanceof Error) || error instanceof ProcessError) return error;
  const why = await describeDiskProblem(directory, error);
  return new ProcessError("BadDataDir", `cannot start on ${directory}: ${error.message}: ${why}`, {
    cause: error,
  });
}

/** Blocks and files: either can run out alone. A directory that could not be made is on the disk of its parent. */
async function freeOf(directory: string): Promise<string> {
  try {
    const { bavail, bsize, ffree } = await statfs(directory);
    return `${Math.floor((bavail * bsize) / 1024)} kB and ${ffree} files free`;
  } catch (error) {
    const parent = dirname(directory);
    if (systemCode(error) === "ENOENT" && parent !== directory) return freeOf(parent);
    return "how much is free is not known";
  }
}
