import type { Pod } from "../kube/api/pod.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { volumeOf, type Cluster } from "./cluster.ts";
import { textAt } from "./fields.ts";
import { claimRefOf } from "./fit.ts";

/** Pods on the attachment's node that use its volume, by what the claims say and by what the volume says. */
export function usersOf(cluster: Cluster, attachment: VolumeAttachment): readonly Pod[] {
  const [pv, node] = [volumeOf(attachment), textAt(attachment, "spec", "nodeName")];
  const claims = new Set([...cluster.claimsOf(pv), claimRefOf(cluster.find("volumes", pv))]);
  const pods = [...claims].flatMap((id) => cluster.podsOfClaim(id));
  return [...new Set(pods)].filter((pod) => textAt(pod, "spec", "nodeName") === node);
}
