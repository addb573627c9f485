import { settleAttachability } from "../status.ts";
import { mark, type Context } from "../context.ts";
import { isKnown } from "./orphans.ts";
import { addEntry, isExplained, volumesOfPod } from "./reconstruct.ts";

/**
 * The directory of a pod that could not be read at the start, looked at again. What is in it is taken up as at a start: held as
 * uncertain, and taken down by the ordinary plan. But only once the pod is gone: what a live one has there it mounts again, and
 * a step that is under way for it must not find the volume changed.
 *
 * Answers what is still unexplained: the directory itself while it cannot be read, or a volume that no plugin here serves.
 */
export async function lookAgain(context: Context, podUid: string): Promise<readonly string[]> {
  const { host, paths, world, inUse, log } = context;
  const directory = paths.podDirectory(podUid);
  const entries = await volumesOfPod({ host, paths }, podUid).catch(() => undefined);
  if (entries === undefined) return [directory];
  const open = entries.filter((entry) => !isExplained(world, entry));
  if (open.length > 0 && isKnown(context, podUid)) return [directory];
  const strays: string[] = [];
  for (const entry of open) if (!(await addEntry(context, entry))) strays.push(entry.found.path);
  for (const volume of world.volumesOf(podUid)) mark(context, volume);
  settleAttachability(world, inUse);
  log.info("directory of a pod is read now", { path: directory, volumes: open.length });
  return strays;
}
