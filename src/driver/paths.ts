import type { Context } from "./context.ts";
import { invalid } from "./errors.ts";
import { checkPresent } from "./validate.ts";

/**
 * A path has many spellings: `/a/b`, `/a//b/`, `/a/./b`. Orchestrators use one for publish and another for unpublish, so
 * each is brought into one form where it comes in, and records hold only that.
 */

const PATH_BYTES_MAX = 4_096;

/** Paths are mounted on: absolute, without a step back, and in the one spelling by which records know them. */
export function toPath(text: string, field: string): string {
  checkPresent(text, field);
  if (Buffer.byteLength(text) > PATH_BYTES_MAX)
    throw invalid(`${field} is longer than ${PATH_BYTES_MAX} bytes`);
  if (!text.startsWith("/")) throw invalid(`${field} is not an absolute path`);
  if (text.includes("\0") || text.split("/").includes("..")) {
    throw invalid(`${field} holds ".." or a NUL character`);
  }
  const path = plain(text);
  if (path === "/") throw invalid(`${field} is the root directory`);
  return path;
}

/** For calls that ask where a volume is: at a path that is none, nothing is. */
export function toPlace(text: string): string | undefined {
  try {
    return toPath(text, "path");
  } catch {
    return undefined;
  }
}

function plain(path: string): string {
  return `/${path
    .split("/")
    .filter((step) => step !== "" && step !== ".")
    .join("/")}`;
}

/**
 * The one of `known` that is the same place as `path`: in the same spelling (records of an earlier version hold what the
 * caller wrote), or through a link in the directories above it.
 */
export async function samePlace(
  { host }: Context,
  known: readonly string[],
  path: string | undefined,
): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const spelled = known.find((one) => plain(one) === path);
  if (spelled !== undefined || known.length === 0) return spelled;
  const place = await host.files.resolve(path);
  if (place === undefined) return undefined;
  for (const one of known) if ((await host.files.resolve(plain(one))) === place) return one;
  return undefined;
}
