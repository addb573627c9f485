import type { AttachedVolume } from "kubernetes-types/core/v1.js";
import type { Patch } from "../kube/client/client.ts";
import type { Hold, NodeState } from "./world.ts";

/**
 * `status.volumesAttached`: a projection of what is held and listed, never a record of its own. A kubelet mounts what
 * it finds there, so a volume is in it only while it is certainly attached.
 */
export function intendedList(state: NodeState): AttachedVolume[] {
  const list: AttachedVolume[] = [];
  const known = new Set(state.node?.status?.volumesAttached?.map(({ name }) => name));
  for (const { volume, hold } of state.placements.values())
    if (hold && mayBeNamed(hold, known.has(volume.name)))
      list.push({ name: volume.name, devicePath: hold.devicePath });
  return list;
}

/** What was only found attached at the start stays on a list, but is not put onto one. */
function mayBeNamed({ listed, proven }: Hold, onServer: boolean): boolean {
  return listed && (proven || onServer);
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
    if (!hold || !mayBeNamed(hold, paths.has(volume.name))) continue;
    intended++;
    if (paths.get(volume.name) !== hold.devicePath) return true;
  }
  return intended !== paths.size;
}

/**
 * The list has no merge key: it is replaced as a whole, and removed by null. Bound to the version it was made from, so that
 * one that is carried out late, behind another, is refused.
 */
export function statusPatch(list: readonly AttachedVolume[], resourceVersion: string | undefined): Patch {
  const status = { volumesAttached: list.length === 0 ? null : list };
  return { type: "strategic", value: { metadata: { resourceVersion }, status } };
}
