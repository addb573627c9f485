import { mayMultiAttach } from "../volumes/access.ts";
import { specName, type VolumeSpec } from "../volumes/spec.ts";
import { isMounted } from "./node-view.ts";
import type { Placement } from "./world.ts";

/**
 * Who has a volume that only one node may have. What is attached by a VolumeAttachment of somebody else counts like our own.
 * Two PersistentVolumes can name one disk, and one may allow several nodes where the other does not: the stricter decides.
 */

/** Other nodes that hold, or may hold, the volume, so that this one may not get it. */
export function holdersElsewhere(placement: Placement): Placement[] {
  if (placement.volume.placements.length < 2) return [];
  const spec = specOf(placement);
  return placement.volume.placements.filter(
    (other) => other !== placement && isHeld(other) && excludes(spec, other),
  );
}

/** An operation under way on another node that this one must not overlap with. */
export function runningElsewhere(placement: Placement): Placement | undefined {
  if (placement.volume.placements.length < 2) return undefined;
  const spec = specOf(placement);
  return placement.volume.placements.find(
    (other) => other !== placement && other.busy && excludes(spec, other),
  );
}

/**
 * Another holder that has the better right to a volume of one node: who uses it, who surely has it, who wants it, in this
 * order; a node where nobody here can take it, because it attaches for itself or somebody else attached it there, before all.
 * Between equals the name decides, so that never both give way.
 */
export function rivalOf(placement: Placement): Placement | undefined {
  return holdersElsewhere(placement).find((other) => hasBetterRight(other, placement));
}

/** A driver has said so, to us or to whoever made the VolumeAttachment. */
export function isSurelyHeld({ hold, foreign }: Placement): boolean {
  return hold?.confirmed === true || foreign.some(({ attached }) => attached);
}

/** `attached to n1 by VolumeAttachment x, which is not ours`: what there is to know where the node alone does not say it. */
export function describeHolder({ node, hold, foreign }: Placement): string {
  const names = foreign.map(({ name }) => name).join(", ");
  if (names === "") return node.name;
  return `${node.name} (by VolumeAttachment ${names}, which this controller did not make${hold ? "" : " and does not delete"})`;
}

function isHeld({ hold, foreign }: Placement): boolean {
  return hold !== undefined || foreign.length > 0;
}

function specOf({ want, hold }: Placement): VolumeSpec | undefined {
  return want?.spec ?? hold?.spec;
}

/**
 * Of what nothing is known, it does not. An older state of the same PersistentVolume does not count against a newer one:
 * whoever changed its access modes meant just that.
 */
function excludes(spec: VolumeSpec | undefined, other: Placement): boolean {
  if (isSingleNode(spec)) return true;
  const name = spec && specName(spec);
  if (other.foreign.some((hold) => hold.singleNode && hold.persistentVolume !== name)) return true;
  const theirs = specOf(other);
  return isSingleNode(theirs) && (spec === undefined || theirs === undefined || !isSameVolume(spec, theirs));
}

function isSameVolume(one: VolumeSpec, other: VolumeSpec): boolean {
  return one.kind === other.kind && specName(one) === specName(other);
}

function isSingleNode(spec: VolumeSpec | undefined): boolean {
  return spec !== undefined && !mayMultiAttach(spec);
}

function hasBetterRight(one: Placement, other: Placement): boolean {
  const order = rightOf(one) - rightOf(other);
  return order === 0 ? one.node.name < other.node.name : order > 0;
}

function rightOf(placement: Placement): number {
  const { node, want, hold, foreign } = placement;
  const outOfReach = (node.exists && !node.managed) || foreign.some(({ attached }) => attached);
  return (outOfReach ? 8 : 0) + (isMounted(placement) ? 4 : 0) + (hold?.confirmed ? 2 : 0) + (want ? 1 : 0);
}
