import type { AttachedVolume } from "kubernetes-types/core/v1.js";
import type { Patch } from "../kube/client/client.ts";
import type { NodeState } from "./world.ts";

/**
 * `status.volumesAttached`: a projection of what is held and listed, never a record of its own. A kubelet mounts what
 * it finds there, so a volume is in it only while it is certainly attached.
 */
export function intendedList({ placements }: NodeState): AttachedVolume[] {
  const list: AttachedVolume[] = [];
  for (const { volume, hold } of placements.values())
    if (hold?.listed) list.push({ name: volume.name, devicePath: hold.devicePath });
  return list;
}

/** Whether the server's list, as far as we know, says something else than it should. */
export function statusDiffers(state: NodeState): boolean {
  if (!state.exists || !state.managed) return false;
  // A write whose answer never came may have changed it, or may yet.
  if (state.unconfirmed) return true;
  const known = state.node?.status?.volumesAttached ?? [];
  const paths = new Map(known.map(({ name, devicePath }) => [name, devicePath]));
  let intended = 0;
  for (const { volume, hold } of state.placements.values()) {
    if (!hold?.listed) continue;
    intended++;
    if (paths.get(volume.name) !== hold.devicePath) return true;
  }
  return intended !== paths.size;
}

/** The list has no merge key: it is replaced as a whole, and removed by null. */
export function statusPatch(list: readonly AttachedVolume[]): Patch {
  return { type: "strategic", value: { status: { volumesAttached: list.length === 0 ? null : list } } };
}
