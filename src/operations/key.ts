/**
 * What an operation needs for itself. A volume alone is the whole volume; with a node or a pod it is the volume's
 * part there, and leaves the other nodes or pods alone.
 *
 * The attach/detach controller uses (volume) where only one node may hold it, so that a detach here and an attach
 * there cannot overlap, and (volume, node) where several may. An empty volume needs nothing: a verification of a
 * node only reads.
 */
export interface OperationKey {
  readonly volume: string;
  /** Missing or empty: whatever the pod. */
  readonly pod?: string | undefined;
  /** Missing or empty: whatever the node. */
  readonly node?: string | undefined;
}

/** Whether the two may not run at once. Symmetric, and not transitive: two nodes both conflict with the whole. */
export function keysConflict(one: OperationKey, other: OperationKey): boolean {
  if (one.volume === "" || one.volume !== other.volume) return false;
  return overlaps(one.pod, other.pod) && overlaps(one.node, other.node);
}

function overlaps(one: string | undefined, other: string | undefined): boolean {
  return !one || !other || one === other;
}
