import { join } from "node:path";
import type { Context } from "../context.ts";
import { escapeName } from "../paths.ts";
import { specName } from "../../volumes/spec.ts";
import type { VolumeState } from "../world.ts";

/**
 * What is here and belongs to nothing that is known: directories of pods that no plugin serves, mounts below the plugins'
 * directories that no record, no pod and no plugin accounts for. Strays are left alone; while there is one, what
 * `volumesInUse` said before stays, because the stray may be what it speaks of.
 */

type Place = Pick<Context, "host" | "paths" | "world">;

/** Mounts of volumes that nobody knows. A driver's own directories, `plugins/<driver>`, are its own business. */
export async function findUnexplained({ host, paths, world }: Place): Promise<readonly string[]> {
  const table = await host.mounts.table();
  const ours = table
    .below(paths.plugins)
    .filter(({ path }) => path.startsWith(`${paths.plugins}/kubernetes.io`));
  if (ours.length === 0) return [];
  const roots = [...world.volumes.values()].flatMap(placesOf);
  return ours.map(({ path }) => path).filter((path) => !roots.some((root) => isWithin(path, root)));
}

/** Those that are still there, or cannot be looked at. */
export async function stillStray(place: Place, strays: readonly string[]): Promise<readonly string[]> {
  const { paths } = place;
  const unexplained = new Set(await findUnexplained(place));
  const left: string[] = [];
  for (const path of strays) {
    const isMount = isWithin(path, paths.plugins);
    if (isMount ? unexplained.has(path) : await mayBeThere(place, path)) left.push(path);
  }
  return left;
}

/** One that hangs or fails is somebody's dead server: it says nothing of the others, and is asked again in seconds. */
async function mayBeThere({ host }: Place, path: string): Promise<boolean> {
  return host.files.stat(path).then(
    (stat) => stat !== undefined,
    () => true,
  );
}

/** Where the step once a node, and the device files of its pods, put a volume. */
function placesOf({ plugin, held }: VolumeState): readonly string[] {
  if (!held || held.unknown) return [];
  const { spec, mode, deviceMountPath, mounts } = held;
  const places = [deviceMountPath];
  if (mode === "Block" && plugin.block) {
    const staging = plugin.block.stagingPath(spec);
    places.push(plugin.block.globalMapPath(spec), staging);
    // Beside the staging directories lies what drivers publish: one file a pod.
    const published = join(staging, "..", "..", "publish", escapeName(specName(spec)));
    for (const uid of mounts.keys()) places.push(join(published, uid));
  }
  return places.filter((place) => place !== "");
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}
