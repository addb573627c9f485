import { join } from "node:path";
import type { Context } from "../context.ts";
import type { MountPoint, MountTable } from "../host.ts";
import { isAtOrBelow, mountContaining } from "../mount-table.ts";
import type { PodMount, VolumeState } from "../world.ts";
import type { Question, Target } from "./holders.ts";

/** What to look for before a volume is taken from a pod, and before it is let go: which mounts, which devices. */

type Place = Pick<Context, "host" | "paths" | "world">;

/** A directory or disk of the machine, which its own services may have as well; nobody else gets it when the pod goes. */
const OWNED_BY_MACHINE: ReadonlySet<string> = new Set([
  "kubernetes.io/local-volume",
  "kubernetes.io/host-path",
]);

/** `podUid` of "" asks for the volume itself. */
export async function questionOf(
  place: Place,
  {
    volume,
    podUid,
    table,
  }: { readonly volume: VolumeState; readonly podUid: string; readonly table: MountTable },
): Promise<Question> {
  const { held, plugin, wants, detaching } = volume;
  const mount = held?.mounts.get(podUid);
  const isAlive = (uid: string) => place.world.pods.has(uid);
  const base = { podUid: podUid === "" ? undefined : podUid, isAlive };
  // A volume that is being detached stays with none of them: there every process counts.
  const stays = (uid: string) => uid !== podUid && wants.has(uid) && !detaching;
  const others = new Set([...(held?.mounts.keys() ?? [])].filter(stays));
  if (!held || OWNED_BY_MACHINE.has(plugin.name)) return { ...base, others, targets: [], devices: [] };
  const directories = mount ? directoriesOf(place, volume, mount) : [held.deviceMountPath];
  const block = held.mode === "Block";
  const bound = block && mount ? (plugin.block?.globalMapPath(mount.spec) ?? "") : "";
  const boundAt = bound === "" ? "" : join(bound, podUid);
  directories.push(boundAt);
  // What is mounted from a device is found at the directories; its number tells of those that got it another way.
  const device = block || !mount ? await deviceNumberOf(place, [boundAt, held.devicePath]) : undefined;
  const targets = directories
    .filter((path) => path.startsWith("/"))
    .flatMap((path) => targetsAt(table, path));
  if (device !== undefined) targets.push({ deviceNumber: device, root: "/", source: "" });
  return { ...base, others, targets, devices: block && device !== undefined ? [device] : [] };
}

/** A pod's whole directory, before it is removed. */
export function questionOfPod(
  { paths }: Pick<Context, "paths">,
  podUid: string,
  table: MountTable,
): Question {
  const targets = targetsAt(table, paths.podDirectory(podUid));
  return { podUid, targets, devices: [], others: new Set(), isAlive: () => false };
}

/** Where the pod finds it, where its plugin put it, and where parts of it lie for containers that want only those. */
function directoriesOf(
  { paths }: Place,
  { plugin }: VolumeState,
  { podUid, specName, path }: PodMount,
): string[] {
  const own = paths.podDirectory(podUid);
  const found = [paths.podVolume(podUid, plugin.name, specName), paths.podSubPaths(podUid, specName)];
  // Elsewhere it is somebody else's directory: a hostPath.
  return isAtOrBelow(path, own) ? [...found, path] : found;
}

/** The directory itself, as a part of what it lies on, and whatever is mounted at or below it. */
function targetsAt(table: MountTable, path: string): Target[] {
  const around = mountContaining(table.points, path);
  const mounted = table.below(path);
  if (!around || around.path === path) return mounted.map(toTarget);
  const below = path.slice(around.path === "/" ? 0 : around.path.length);
  const root = `${around.root === "/" ? "" : around.root}${below}`;
  return [...mounted.map(toTarget), { ...toTarget(around), root }];
}

function toTarget({ deviceNumber, root, source }: MountPoint): Target {
  return { deviceNumber, root, source };
}

/** Of the first path that is a block device. */
async function deviceNumberOf({ host }: Place, paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const stat = path.startsWith("/") ? await host.files.statTarget(path) : undefined;
    if (stat?.kind === "block") return stat.deviceNumber;
  }
  return undefined;
}
