import { join } from "node:path";
import { backoffMs } from "../../base/backoff.ts";
import { abortable } from "../../base/clock.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { mark, type Context } from "../context.ts";
import { HostError } from "../host.ts";
import { settleAttachability } from "../status.ts";
import { addFound, volumesOfPod, type FoundEntry } from "./reconstruct.ts";
import { isResidue, removeDraft } from "./residue.ts";
import { isMirrored, isStaticPod } from "./static-pods.ts";

/**
 * Directories of pods that are gone. What could be somebody's data is never removed: a directory goes only where nothing
 * is mounted below it, no device is linked, no process has anything of the pod, and its volumes are empty directories, or
 * hold nothing but the record of a volume whose driver then is asked once more. Those of static pods are a kubelet's.
 */
export interface OrphanVerdict {
  readonly podUid: string;
  readonly kind: "remove" | "adopt" | "keep";
  /** Why it is kept; empty otherwise. */
  readonly why: string;
}

/** Until it is looked at again whether what kept it is over: nothing announces that a process ended or a file went. */
const KEPT = { initialMs: 5_000, maxMs: 60_000 } as const;
/** A process ends within its grace period, and all who wait share one look at the machine. */
const HELD_MS = 10_000;

interface Judged extends OrphanVerdict {
  /** Volumes of which only the record is left: their driver is asked to unpublish once more, then they go. */
  readonly residue: readonly FoundEntry[];
}

/** What would be done, for people to look at before or instead of doing it. */
export async function listOrphans(context: Context): Promise<readonly OrphanVerdict[]> {
  const verdicts: OrphanVerdict[] = [];
  for (const { name, kind } of (await context.host.files.list(context.paths.pods)) ?? [])
    if (kind === "directory" && !isKnown(context, name)) {
      const { podUid, kind: verdict, why } = await judge(context, name);
      verdicts.push({ podUid, kind: verdict, why });
    }
  return verdicts;
}

/**
 * Looks at one pod's directory: when the last of the pod has gone, when its object has, and for every directory found at
 * the start. One that is kept is looked at again by itself; why it is kept is said once.
 */
export function createOrphanCleaner(context: Context): (podUid: string) => Promise<Outcome> {
  /** By pod uid. Bound: directories of pods that are gone and kept. */
  const kept = new Map<string, { readonly why: string; readonly times: number }>();

  function keep(podUid: string, why: string): number {
    const before = kept.get(podUid);
    const times = before?.why === why ? before.times + 1 : 1;
    kept.set(podUid, { why, times });
    if (times === 1) context.log.warn("directory of a pod that is gone is kept", { podUid, why });
    return times;
  }

  async function clean(podUid: string): Promise<Outcome> {
    const verdict = await judge(context, podUid);
    if (verdict.kind === "keep") {
      if (verdict.why === "") return { kind: "done" };
      return { kind: "after", ms: backoffMs(keep(podUid, verdict.why), KEPT) };
    }
    if (verdict.kind === "adopt") {
      await adopt(context, verdict.residue);
      return { kind: "done" };
    }
    // A stop does not wait for the look, and nothing is removed after it.
    const holder = await abortable(context.evidence.holderOfPod(podUid), context.stopping);
    if (holder !== undefined) {
      keep(podUid, holder);
      return { kind: "after", ms: HELD_MS };
    }
    if (await removePod(context, podUid))
      context.log.info("directory of a pod that is gone removed", { podUid });
    return { kind: "done" };
  }

  return async (podUid) => {
    const outcome: Outcome = isGone(context, podUid) ? await clean(podUid) : { kind: "done" };
    if (outcome.kind === "done") kept.delete(podUid);
    return outcome;
  };
}

/** Not one with volumes on their way out: it is looked at again when the last of them has gone. */
function isGone(context: Context, podUid: string): boolean {
  return !isKnown(context, podUid) && [...context.world.volumesOf(podUid)].length === 0;
}

/** Also one that has terminated: its directory is its own until the object is gone. */
export function isKnown(context: Context, podUid: string): boolean {
  const { caches, podStates } = context;
  if (caches.pods.byIndex("uid", podUid).length > 0 || !podStates.runtimeRemoved(podUid)) return true;
  return isStaticPod(podUid) || isMirrored(context, podUid);
}

/** Known from now on like any other volume of a pod that is gone; when it has been taken down, the pod is looked at again. */
async function adopt(context: Context, residue: readonly FoundEntry[]): Promise<void> {
  const { plugins, world, inUse, log } = context;
  for (const entry of residue) {
    const plugin = plugins.byName(entry.pluginName);
    if (!plugin || isKnown(context, entry.found.podUid)) continue;
    await removeDraft(context, entry);
    await addFound(context, plugin, entry.found);
    log.info("residue of a volume is taken down", { path: entry.found.path });
    for (const volume of world.volumesOf(entry.found.podUid)) mark(context, volume);
  }
  settleAttachability(world, inUse);
  inUse.changed();
}

async function judge(context: Context, podUid: string): Promise<Judged> {
  const { host, paths, world, plugins } = context;
  const residue: FoundEntry[] = [];
  const keep = (why: string): Judged => ({ podUid, kind: "keep", why, residue: [] });
  const directory = paths.podDirectory(podUid);
  if ((await host.files.list(directory)) === undefined) return keep("");
  const [held] = world.volumesOf(podUid);
  if (held) return keep(`volume ${held.name} is or may be there`);
  const table = await host.mounts.table();
  const [mount] = table.below(directory);
  if (mount) return keep(`${mount.path} is a mount point`);
  for (const entry of await volumesOfPod(context, podUid)) {
    const { path, mode } = entry.found;
    if (mode === "Block") return keep(`${path} is a device of the pod`);
    if (plugins.byName(entry.pluginName) && (await isResidue(context, entry))) residue.push(entry);
    else {
      const inside = await host.files.list(path);
      const [first] = inside ?? [];
      if (inside === undefined || first)
        return keep(`${join(path, first?.name ?? "")} is no empty directory`);
    }
  }
  return { podUid, kind: residue.length > 0 ? "adopt" : "remove", why: "", residue };
}

/**
 * Volumes by rmdir alone: whatever turned up in one since it was judged stays, and so does the pod's directory. A look at the
 * machine takes seconds, and the watch of pods may be behind a kubelet that has made the directory: a pod that is heard of
 * meanwhile keeps what is left, and its volumes are mounted into it. True where all of it went.
 */
async function removePod(context: Context, podUid: string): Promise<boolean> {
  const { paths } = context;
  const { files } = context.host;
  const directory = paths.podDirectory(podUid);
  const volumes = (await volumesOfPod(context, podUid)).map(({ found }) => found.path);
  for (const top of [paths.podVolumes(podUid), paths.podDevices(podUid)])
    volumes.push(...((await files.list(top)) ?? []).map(({ name }) => join(top, name)), top);
  for (const path of volumes) {
    if (!isGone(context, podUid)) return false;
    await files.removeDirectory(path);
  }
  for (const { name } of (await files.list(directory)) ?? []) {
    if (!isGone(context, podUid)) return false;
    await files.removeTree(join(directory, name));
  }
  await files.removeDirectory(directory).catch((error: unknown) => {
    if (!(error instanceof HostError && error.code === "NotEmpty")) throw error;
  });
  return true;
}
