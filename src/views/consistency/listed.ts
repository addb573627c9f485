import { found, seen } from "../checks/check.ts";
import type { Cluster } from "../cluster.ts";
import { idOf, nameOf, textAt } from "../fields.ts";
import type { Finding } from "../reasons/reasons.ts";
import { bareView, volumeViewsOf, type VolumeView } from "../volume-view.ts";

/*
 * What a node lists as attached although no VolumeAttachment has it there. Nobody attaches like that: a controller takes a
 * volume off the list before it deletes the VolumeAttachment, and lists it after it is attached.
 */

/** Of one volume that no pod uses: every node that lists it. A pod that uses it is told of it by the checks. */
export function listedOnly(cluster: Cluster, { uniqueName, pod }: VolumeView): readonly Finding[] {
  if (pod !== undefined) return [];
  return cluster.nodesListing(uniqueName).flatMap((node) => findingOf(cluster, nameOf(node), uniqueName));
}

/** Of one node: everything that it lists. */
export function listedOn(cluster: Cluster, nodeName: string, names: readonly string[]): readonly Finding[] {
  return names.flatMap((name) => findingOf(cluster, nodeName, name));
}

/** Volumes of other plugins than CSI have no VolumeAttachment. */
const CSI = "kubernetes.io/csi/";

function findingOf(cluster: Cluster, nodeName: string, unique: string): readonly Finding[] {
  if (!unique.startsWith(CSI) || !cluster.knows("attachments")) return [];
  const attached = cluster.disks().attachmentsOf(unique);
  if (attached.some((item) => textAt(item, "spec", "nodeName") === nodeName)) return [];
  const users = cluster
    .podsOn(nodeName)
    .filter((pod) => volumeViewsOf(cluster, pod).some(({ uniqueName }) => uniqueName === unique));
  return [
    found("node-lists-detached", bareView(cluster, { nodeName }), {
      names: {
        unique,
        users:
          users.length === 0 ? "no pod there uses it" : `pod ${users.map(idOf).join(", ")} there uses it`,
      },
      evidence: [
        seen(`Node ${nodeName}`, "status.volumesAttached", unique),
        seen("VolumeAttachments", `of it on ${nodeName}`, ""),
      ],
    }),
  ];
}
