import { join } from "node:path";
import type { Outcome } from "../kube/workqueue/controller.ts";
import type { Context } from "./context.ts";
import { HostError } from "./host.ts";

/**
 * Directories of pods that are gone. What could be somebody's data is never removed: a directory goes only where nothing
 * is mounted below it, no device is linked, nothing of the pod is held, and its volumes are empty directories.
 */
export interface OrphanVerdict {
  readonly podUid: string;
  readonly kind: "remove" | "keep";
  /** Why it is kept; empty otherwise. */
  readonly why: string;
}

/** What would be done, for people to look at before or instead of doing it. */
export async function listOrphans(context: Context): Promise<readonly OrphanVerdict[]> {
  const verdicts: OrphanVerdict[] = [];
  for (const { name, kind } of (await context.host.files.list(context.paths.pods)) ?? [])
    if (kind === "directory" && !isKnown(context, name)) verdicts.push(await judge(context, name));
  return verdicts;
}

/** One pod's directory. Called when the last of the pod has gone, and for every directory found at the start. */
export async function cleanOrphan(context: Context, podUid: string): Promise<Outcome> {
  if (isKnown(context, podUid)) return { kind: "done" };
  const verdict = await judge(context, podUid);
  if (verdict.kind === "keep") {
    if (verdict.why !== "")
      context.log.warn("directory of a pod that is gone is kept", { podUid, why: verdict.why });
    return { kind: "done" };
  }
  await removePod(context, podUid);
  context.log.info("directory of a pod that is gone removed", { podUid });
  return { kind: "done" };
}

/** Also one that has terminated: its directory is its own until the object is gone. */
function isKnown({ caches, podStates }: Context, podUid: string): boolean {
  return caches.pods.byIndex("uid", podUid).length > 0 || !podStates.runtimeRemoved(podUid);
}

async function judge({ host, paths, world }: Context, podUid: string): Promise<OrphanVerdict> {
  const keep = (why: string): OrphanVerdict => ({ podUid, kind: "keep", why });
  const directory = paths.podDirectory(podUid);
  if ((await host.files.list(directory)) === undefined) return keep("");
  const [held] = world.volumesOf(podUid);
  if (held) return keep(`volume ${held.name} is or may be there`);
  const table = await host.mounts.table();
  const [mount] = table.below(directory);
  if (mount) return keep(`${mount.path} is a mount point`);
  const devices = await entriesBelow(host.files, paths.podDevices(podUid));
  if (devices[0]) return keep(`${devices[0].path} is a device of the pod`);
  for (const { path } of await entriesBelow(host.files, paths.podVolumes(podUid))) {
    const inside = await host.files.list(path);
    const [first] = inside ?? [];
    if (inside === undefined || first) return keep(`${join(path, first?.name ?? "")} is no empty directory`);
  }
  return { podUid, kind: "remove", why: "" };
}

type Files = Context["host"]["files"];

/** `<directory>/<plugin~>/<volume>`. */
async function entriesBelow(files: Files, directory: string): Promise<readonly { readonly path: string }[]> {
  const found: { path: string }[] = [];
  for (const plugin of (await files.list(directory)) ?? [])
    for (const volume of (await files.list(join(directory, plugin.name))) ?? [])
      found.push({ path: join(directory, plugin.name, volume.name) });
  return found;
}

/** Volumes by rmdir alone: whatever turned up in one since it was judged stays, and so does the pod's directory. */
async function removePod({ host, paths }: Context, podUid: string): Promise<void> {
  const { files } = host;
  const volumes = paths.podVolumes(podUid);
  for (const { path } of await entriesBelow(files, volumes)) await files.removeDirectory(path);
  for (const top of [volumes, paths.podDevices(podUid)]) {
    for (const plugin of (await files.list(top)) ?? []) await files.removeDirectory(join(top, plugin.name));
    await files.removeDirectory(top);
  }
  const directory = paths.podDirectory(podUid);
  for (const { name } of (await files.list(directory)) ?? []) await files.removeTree(join(directory, name));
  await files.removeDirectory(directory).catch((error: unknown) => {
    if (!(error instanceof HostError && error.code === "NotEmpty")) throw error;
  });
}
