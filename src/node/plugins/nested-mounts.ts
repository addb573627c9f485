import { posix } from "node:path";
import type { VolumeMount } from "kubernetes-types/core/v1.js";
import type { Pod } from "../../kube/api/pod.ts";
import { VolumeError } from "../errors.ts";

/**
 * Directories that a read-only content volume needs because other volumes of the same container are mounted inside it;
 * the runtime cannot make them. Relative to the volume; of `/d/n` and `/d/n/o` only `n`, since `o` lies in another volume.
 */
export function nestedMountPoints(pod: Pod, volumeName: string): readonly string[] {
  const { containers = [], initContainers = [], ephemeralContainers = [] } = pod.spec ?? {};
  const found = new Set<string>();
  for (const { volumeMounts = [] } of [...initContainers, ...containers, ...ephemeralContainers])
    for (const directory of nestedIn(volumeMounts, volumeName)) found.add(directory);
  return [...found].sort();
}

function nestedIn(mounts: readonly VolumeMount[], volumeName: string): readonly string[] {
  // A subPath shows a part of the volume, so where it is mounted says nothing about the volume's own directory.
  const own = mounts.filter(
    ({ name, subPath, subPathExpr }) => name === volumeName && !subPath && !subPathExpr,
  );
  const others = mounts.filter((mount) => !own.includes(mount)).map(({ mountPath }) => normal(mountPath));
  return own.flatMap(({ mountPath }) => {
    const root = normal(mountPath);
    const below = others.flatMap((path) => relativeBelow(root, path) ?? []).sort();
    return below.filter((path) => !below.some((other) => path.startsWith(`${other}/`)));
  });
}

function normal(mountPath: string): string {
  return posix.normalize(`/${mountPath}`).replace(/(.)\/$/, "$1");
}

function relativeBelow(root: string, path: string): string | undefined {
  const prefix = root === "/" ? "/" : `${root}/`;
  if (!path.startsWith(prefix) || path.length === prefix.length) return undefined;
  const relative = path.slice(prefix.length);
  if (relative.startsWith(".."))
    throw new VolumeError("final", `mount path ${path}: names that start with '..' are kept inside ${root}`);
  return relative;
}
