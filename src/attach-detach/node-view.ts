import { isUnread, MANAGED_ATTACH_ANNOTATION, type Node } from "../kube/api/node.ts";
import { splitCsiVolume, splitVolumeName, volumeAttachmentName, type VolumeName } from "../volumes/names.ts";
import { mayBeSameDisk } from "../volumes/translation/in-tree-names.ts";
import { excluding, type LateList, type NodeState, type Placement } from "./world.ts";

/** What a node says, read from its object; pure. */

const OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service";

export function isManaged(node: Node): boolean {
  return node.metadata.annotations?.[MANAGED_ATTACH_ANNOTATION] !== undefined;
}

/** The first Ready condition is True. No condition, no object: not healthy. */
export function isHealthy(node: Node | undefined): boolean {
  return node?.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
}

/** Healthy, and its volume manager is not known to be still looking for what is mounted there. */
export function canTellUse(node: Node): boolean {
  return isHealthy(node) && !isUnread(node);
}

/** Any effect, any value: an operator says that the machine is off. */
export function isOutOfService(node: Node | undefined): boolean {
  return node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE_TAINT) ?? false;
}

export function usesVolume(node: Node | undefined, volume: VolumeName): boolean {
  const inUse = node?.status?.volumesInUse;
  if (!inUse?.length) return false;
  if (!isAttachmentOnly(volume))
    return inUse.includes(volume) || inUse.some((name) => mayBeSameDisk(name, volume));
  const attachment = volume.slice(ATTACHMENT_ONLY.length);
  return inUse.some((name) => attachmentNameOf(name, node?.metadata.name ?? "") === attachment);
}

/** By what the node says; until its Node object has spoken, also by what the one before it said last. */
export function mayUse({ node, former }: NodeState, volume: VolumeName): boolean {
  return usesVolume(node, volume) || usesVolume(former, volume);
}

export function listsVolume(node: Node | undefined, volume: VolumeName): boolean {
  return node?.status?.volumesAttached?.some(({ name }) => name === volume) ?? false;
}

/** Whether a kubelet may find it in `volumesAttached`, now or once a write under way arrives. */
export function mayBeListed({ node, volume }: Placement): boolean {
  return listsVolume(node.node, volume.name) || (node.unconfirmed?.has(volume.name) ?? false);
}

/** Until when a lost list may put it back onto `volumesAttached`; undefined if none can. */
export function lateUntilMs({ node, volume }: Placement, nowMs: number): number | undefined {
  const list = node.late.get(volume.name);
  return list !== undefined && list.untilMs > nowMs && isWelcome(list, node) ? list.untilMs : undefined;
}

function isWelcome({ version }: LateList, { node }: NodeState): boolean {
  return version === node?.metadata.resourceVersion;
}

/** Placements that no lost list can name any more, because something else was written to the node since. */
export function endLateLists(state: NodeState): readonly Placement[] {
  const ended = [...state.late].filter(([, list]) => !isWelcome(list, state)).map(([name]) => name);
  if (ended.length === 0) return [];
  state.late = new Map([...state.late].filter(([, list]) => isWelcome(list, state)));
  return ended.flatMap((name) => state.placements.get(name as VolumeName) ?? []);
}

/** In use as far as anybody knows; presumed so where nobody does. */
export function isMounted(placement: Placement): boolean {
  const { node, volume } = placement;
  return node.assumed.has(placement) || mayUse(node, volume.name);
}

/** The presumptions that a word from the node ends: all but those that its Node object has inherited. */
export function endPresumptions(state: NodeState): readonly Placement[] {
  const ended = [...state.assumed].filter((placement) => !state.inherited.has(placement));
  for (const placement of ended) state.assumed = excluding(state.assumed, placement);
  return ended;
}

/**
 * A VolumeAttachment whose PersistentVolume is gone: its handle is unknown, but its own name is a digest of the
 * handle, by which a volume that is listed or in use can still be recognised as the same.
 */
const ATTACHMENT_ONLY = "volumeattachment:";

export function attachmentOnlyName(attachment: string): VolumeName {
  return `${ATTACHMENT_ONLY}${attachment}` as VolumeName;
}

export function isAttachmentOnly(volume: VolumeName): boolean {
  return volume.startsWith(ATTACHMENT_ONLY);
}

/** The name of the VolumeAttachment that stands for this volume on this node; undefined where it is not CSI. */
export function attachmentNameOf(volume: string, node: string): string | undefined {
  if (volume.startsWith(ATTACHMENT_ONLY)) return volume.slice(ATTACHMENT_ONLY.length);
  const parts = splitVolumeName(volume);
  if (parts?.plugin !== "kubernetes.io/csi") return undefined;
  const csi = splitCsiVolume(parts.pluginVolume);
  return csi && volumeAttachmentName(csi, node);
}
