import type { Pod } from "../kube/api/pod.ts";
import { claimKeysOf, isPodTerminated } from "../volumes/resolve.ts";
import type { ObjectKey } from "../kube/object.ts";
import { POD_CLAIM_INDEX } from "./caches.ts";
import { mark, type Context } from "./context.ts";
import { mayBeUsedBy } from "./plan.ts";
import { claimOf, type Hold, type NodeState, type Placement, type PodRecord } from "./world.ts";

/**
 * A pod of this node that may be running on a volume although nothing leads from the pod to it any more: its claim was
 * replaced by one of another PersistentVolume, the PersistentVolume by one with another handle, or the CSIDriver by one
 * that needs no attaching. The PersistentVolume the volume was attached as names the claim, and the claim names the pod.
 *
 * Asked of what no pod wants and the node uses. It needs no memory, so it holds after a restart as well, as long as the
 * PersistentVolume is there; the attacher's finalizer keeps it while its VolumeAttachment exists.
 */
export function claimantOf({ caches }: Context, { hold, node }: Placement): Pod | undefined {
  const claim = claimOf(hold?.spec);
  if (claim === undefined) return undefined;
  return caches.pods
    .byIndex(POD_CLAIM_INDEX, claim)
    .find((pod) => pod.spec?.nodeName === node.name && !isPodTerminated(pod));
}

/**
 * The time until a force counts from the end of the last pod that may have run on the volume: also of one that nothing led from
 * any more, or that could not be followed.
 */
export function beginAnewAfter({ clock }: Context, record: PodRecord): void {
  const claims = new Set(claimKeysOf(record.pod));
  for (const { want, hold } of record.node.placements.values())
    if (want === undefined && hold?.unwantedSinceMs !== undefined && mayHaveRunOn(hold, record, claims))
      hold.unwantedSinceMs = clock.now();
}

function mayHaveRunOn({ spec }: Hold, { references }: PodRecord, claims: ReadonlySet<ObjectKey>): boolean {
  const claim = claimOf(spec);
  if (claim !== undefined && claims.has(claim)) return true;
  return references.some(({ unresolved }) => unresolved && mayBeUsedBy(spec, unresolved.resolution));
}

/** A pod of this node is gone or over: what stayed for its sake may go. */
export function markStayed(context: Context, { placements }: NodeState): void {
  for (const placement of placements.values())
    if (placement.waiting?.reason === "unresolved-pod") mark(context, placement);
}
