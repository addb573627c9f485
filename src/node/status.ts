import type { Belonging, InUseList } from "./in-use.ts";
import type { VolumeState, World } from "./world.ts";

/**
 * What belongs into `volumesInUse`: a volume is in it from the moment a pod wants it until nothing of it is left here.
 * While something was found after a start that nobody can make sense of, what the list said before stays: it may be
 * what was found.
 */
export function belongingOf(volume: VolumeState | undefined): Belonging {
  if (volume?.held?.unknown) return "unknown";
  return volume && mayNeedAttach(volume) ? "in-use" : "not-in-use";
}

function mayNeedAttach({ plugin, wants, held }: VolumeState): boolean {
  // Also one that was mounted while its driver needed no attach: now that it does, the controller attaches and detaches it.
  if (held && (held.attachable !== "no" || plugin.traits(held.spec).attachable !== "no")) return true;
  for (const { spec } of wants.values()) if (plugin.traits(spec).attachable !== "no") return true;
  return false;
}

/**
 * What was found on disk is attachable where the node lists it, as attached or in use, or where its plugin says so. Only what
 * its plugin says is not, is not. Nothing is settled before the node's status was read: the plugin goes by its CSIDriver object,
 * which may have been switched since the volume was attached, and is often the first thing that is read after a start.
 */
export function settleAttachability(world: World, inUse: InUseList): void {
  if (inUse.node() === undefined) return;
  for (const { name, plugin, held } of world.volumes.values()) {
    if (held?.attachable !== "uncertain" || held.unknown) continue;
    inUse.touch(name);
    const path = inUse.attachedPath(name);
    if (path !== undefined && held.device !== "mounted") held.devicePath ||= path;
    if (path !== undefined || inUse.isReported(name)) held.attachable = "yes";
    else {
      const { attachable } = plugin.traits(held.spec);
      if (attachable !== "unknown") held.attachable = attachable;
    }
  }
}
