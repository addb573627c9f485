import type { Cluster } from "./cluster.ts";
import { firstFinding } from "./diagnose.ts";
import type { Finding } from "./reasons/reasons.ts";
import { claimView, volumeViewsOf } from "./volume-view.ts";

/** Why a claim waits, by the pods that use it where there are some: the scheduler tells of them, not of the claim. */
export function causeOfClaim(cluster: Cluster, id: string): Finding | undefined {
  const claim = cluster.find("claims", id);
  const used = cluster
    .podsOfClaim(id)
    .flatMap((pod) => volumeViewsOf(cluster, pod).filter(({ claimId }) => claimId === id));
  const views = used.length > 0 || claim === undefined ? used : [claimView(cluster, claim, id)];
  return views.flatMap((view) => firstFinding(view) ?? [])[0];
}
