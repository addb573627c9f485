import { join } from "node:path";
import type { Host } from "./host.ts";

type Looking = Pick<Host, "files" | "mounts" | "devices">;

/**
 * Removes what devices of pods were bound over and nothing is any more, and answers the names of the rest. A removal that
 * was not on the disk when the power failed is undone, and the journal no longer names the pod by then: such a file refers
 * to no device, and would keep the volume in use for ever. One that holds a byte is somebody's.
 */
export async function removeUnbound(host: Looking, directory: string): Promise<readonly string[]> {
  const left: string[] = [];
  for (const { name } of (await host.files.list(directory)) ?? []) {
    const path = join(directory, name);
    if (await isUnbound(host, path)) await host.files.removeFile(path);
    else left.push(name);
  }
  return left;
}

/** Whether a directory is missing, empty, or holds nothing but files as `removeUnbound` removes. */
export async function holdsNothing(host: Looking, directory: string): Promise<boolean> {
  const found = await host.files.stat(directory);
  if (found === undefined) return true;
  if (found.kind !== "directory" || (await host.mounts.isMountPoint(directory))) return false;
  for (const { name } of (await host.files.list(directory)) ?? [])
    if (!(await isUnbound(host, join(directory, name)))) return false;
  return true;
}

async function isUnbound({ files, mounts, devices }: Looking, path: string): Promise<boolean> {
  const found = await files.stat(path);
  return (
    found?.kind === "file" &&
    found.sizeBytes === 0 &&
    !(await mounts.isMountPoint(path)) &&
    (await devices.loopOf(path)) === undefined
  );
}
