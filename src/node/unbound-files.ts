import { join } from "node:path";
import type { Host } from "./host.ts";

/**
 * Removes what devices of pods were bound over and nothing is any more, and answers the names of the rest. A removal that
 * was not on the disk when the power failed is undone, and the journal no longer names the pod by then: such a file refers
 * to no device, and would keep the volume in use for ever. One that holds a byte is somebody's.
 */
export async function removeUnbound(
  { files, mounts, devices }: Pick<Host, "files" | "mounts" | "devices">,
  directory: string,
): Promise<readonly string[]> {
  const left: string[] = [];
  for (const { name } of (await files.list(directory)) ?? []) {
    const path = join(directory, name);
    const found = await files.stat(path);
    const isUnbound =
      found?.kind === "file" &&
      found.sizeBytes === 0 &&
      !(await mounts.isMountPoint(path)) &&
      (await devices.loopOf(path)) === undefined;
    if (isUnbound) await files.removeFile(path);
    else left.push(name);
  }
  return left;
}
