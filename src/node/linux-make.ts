import { chmod, lstat, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { HostError, type FileStat } from "./host.ts";
import { errnoOf, toHostError } from "./linux-errors.ts";
import type { Probes } from "./linux-probes.ts";

/** Answers with those it made, uppermost first. */
export async function makeDirectories(
  probes: Probes,
  path: string,
  mode: number,
): Promise<readonly string[]> {
  const doing = `make directory ${path}`;
  try {
    await mkdir(path, { mode });
    // The umask took bits away.
    await chmod(path, mode);
    return [path];
  } catch (error) {
    if (errnoOf(error) === "ENOENT" && dirname(path) !== path) {
      const parents = await makeDirectories(probes, dirname(path), mode);
      return [...parents, ...(await makeDirectories(probes, path, mode))];
    }
    if (errnoOf(error) !== "EEXIST") throw toHostError(doing, error);
  }
  const there = await lookOrMissing<FileStat>(probes, "statTarget", path);
  if (there?.kind !== "directory") throw new HostError("Exists", `${doing}: it is there and no directory`);
  return [];
}

/** `true` where it was made. */
export async function makeFile(path: string, mode: number): Promise<boolean> {
  try {
    const file = await open(path, "wx", mode);
    await file.chmod(mode);
    await file.close();
    return true;
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    if ((await lstat(path)).isDirectory())
      throw new HostError("Exists", `make ${path}: it is a directory`, { cause: error });
    return false;
  }
}

export function lookOrMissing<T>(probes: Probes, action: string, path: string): Promise<T | undefined> {
  return lookUnlessMissing(probes, action, path, ["ENOENT", "ENOTDIR"]);
}

/** A link to nowhere, a missing parent: undefined. What else goes wrong is an error. */
export async function lookUnlessMissing<T>(
  probes: Probes,
  action: string,
  path: string,
  missing: readonly string[],
): Promise<T | undefined> {
  try {
    return (await probes.ask({ action, path, doing: `look at ${path}` })) as T;
  } catch (error) {
    const code = error instanceof HostError ? errnoOf(error.cause) : undefined;
    if (code !== undefined && missing.includes(code)) return undefined;
    throw error;
  }
}
