import { dirname, join } from "node:path";
import type { EmptyDirVolumeSource } from "kubernetes-types/core/v1.js";
import type { Logger } from "../../base/log.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { Host } from "../host.ts";
import type { NodeObjects } from "../objects.ts";
import type { Paths } from "../paths.ts";
import { mediumOf, mountOf, type Medium } from "./empty-dir-medium.ts";
import { VolumeError } from "../errors.ts";
import { hostStep } from "./failures.ts";
import { toBytes } from "./pod-resources.ts";

export const EMPTY_DIR = "kubernetes.io/empty-dir";

export interface EmptyDirDeps {
  readonly host: Host;
  readonly paths: Paths;
  readonly objects: Pick<NodeObjects, "node">;
  readonly log: Logger;
}

/**
 * An empty directory of a pod, on disk or in memory, at any path: of a volume of its own, or below the files of a
 * configMap or secret. A mark beside it says that it was finished once; what a pod wrote into it is never touched again.
 */
export interface EmptyDirVolume {
  readonly directory: string;
  /** Of the mark: the volume's name, or `wrapped_` and that of the volume around it. */
  readonly markName: string;
  readonly podUid: string;
}

export interface EmptyDirSetUp extends EmptyDirVolume {
  readonly source: EmptyDirVolumeSource;
  readonly pod: Pod;
  readonly fsGroup?: number | undefined;
  readonly signal: AbortSignal;
}

/** Everybody in the pod may write; what runs there as another user has no other way to. */
const MODE = 0o777;
const PARENT_MODE = 0o750;
/** Layers that one tear-down takes off: a crash between mount and mark may leave two, never more than a few. */
const LAYERS_MAX = 8;

/** Answers whether it was new: whatever fails afterwards may take down what is new, never what a pod uses. */
export async function setUpEmptyDir(deps: EmptyDirDeps, request: EmptyDirSetUp): Promise<{ isNew: boolean }> {
  const { host, objects } = deps;
  const { directory, source, pod } = request;
  const medium = mediumOf({ source, pod, node: objects.node() });
  return hostStep(`emptyDir ${directory}`, async () => {
    if (await isReady(deps, request, medium)) return { isNew: false };
    await host.files.makeDirectories(dirname(directory), PARENT_MODE);
    await host.files.makeDirectories(directory, MODE);
    await mountMedium(host, directory, medium);
    // The root of a new tmpfs has a mode of its own, and a umask may have taken bits off the directory.
    await host.files.chmod(directory, MODE);
    await giveToGroup(deps, request);
    await writeMark(deps, request);
    return { isNew: true };
  });
}

/** Missing is fine. Whatever the pod wrote is gone afterwards. */
export async function tearDownEmptyDir({ host, paths }: EmptyDirDeps, volume: EmptyDirVolume): Promise<void> {
  const { directory, podUid, markName } = volume;
  await hostStep(`emptyDir ${directory}`, async () => {
    await host.files.removeTree(paths.podPlugin(podUid, EMPTY_DIR, markName));
    for (let layer = 0; layer < LAYERS_MAX; layer++) {
      const mounted = (await host.mounts.table()).at(directory);
      if (mounted === undefined) break;
      if (mounted.type !== "tmpfs" && mounted.type !== "hugetlbfs")
        throw new VolumeError(
          "final",
          `${mounted.source} (${mounted.type}) is mounted there and is no emptyDir`,
        );
      await host.mounts.unmount(directory);
    }
    await host.files.removeTree(directory);
  });
}

async function isReady(deps: EmptyDirDeps, volume: EmptyDirVolume, medium: Medium): Promise<boolean> {
  const { host } = deps;
  if ((await host.files.stat(markOf(deps, volume))) === undefined) return false;
  if (medium.kind !== "disk") return (await host.mounts.table()).at(volume.directory) !== undefined;
  return (await host.files.stat(volume.directory))?.kind === "directory";
}

async function mountMedium(host: Host, directory: string, medium: Medium): Promise<void> {
  if (medium.kind === "disk") return;
  const { source, type, options } = mountOf(medium, {
    noSwap: medium.kind === "memory" && (await host.mounts.supportsNoSwap()),
  });
  const mounted = (await host.mounts.table()).at(directory);
  if (mounted === undefined) {
    await host.mounts.mount({ source, target: directory, type, options });
    return;
  }
  const pageSize = mounted.options.find((option) => option.startsWith("pagesize="));
  if (medium.kind === "huge-pages" && !isSamePageSize(pageSize, medium.pageSize))
    throw new VolumeError(
      "final",
      `it is mounted with ${pageSize ?? "no page size"} and the pod asks for pagesize=${medium.pageSize}`,
    );
}

/** The kernel shows `pagesize=2M` for what was mounted with `pagesize=2Mi`, and `pagesize=1024M` for `1Gi`. */
function isSamePageSize(shown: string | undefined, wanted: string): boolean {
  const bytes = toBytes(shown?.slice("pagesize=".length).replace(/(?<=[KMG])$/, "i"));
  return bytes !== undefined && bytes === toBytes(wanted);
}

/** A courtesy to the pod: where the group cannot be set, everybody may write all the same. */
async function giveToGroup({ host, log }: EmptyDirDeps, request: EmptyDirSetUp): Promise<void> {
  const { directory, fsGroup, signal } = request;
  if (fsGroup === undefined) return;
  try {
    await host.files.applyGroup({
      path: directory,
      gid: fsGroup,
      readOnly: false,
      onRootMismatch: false,
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn("group of an emptyDir not set", { directory, fsGroup, error });
  }
}

async function writeMark(deps: EmptyDirDeps, volume: EmptyDirVolume): Promise<void> {
  const mark = markOf(deps, volume);
  await deps.host.files.makeDirectories(dirname(mark), PARENT_MODE);
  await deps.host.files.makeFile(mark, 0o640);
}

function markOf({ paths }: EmptyDirDeps, { podUid, markName }: EmptyDirVolume): string {
  return join(paths.podPlugin(podUid, EMPTY_DIR, markName), "ready");
}
