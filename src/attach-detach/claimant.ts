import type { Pod } from "../kube/api/pod.ts";
import { isPodTerminated } from "../volumes/resolve.ts";
import { POD_CLAIM_INDEX } from "./caches.ts";
import { mark, type Context } from "./context.ts";
import { claimOf, type NodeState, type Placement } from "./world.ts";

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

/** A pod of this node is gone or over: what stayed for its sake may go. */
export function markStayed(context: Context, { placements }: NodeState): void {
  for (const placement of placements.values())
    if (placement.waiting?.reason === "unresolved-pod") mark(context, placement);
}
