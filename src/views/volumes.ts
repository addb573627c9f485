import type { Pod } from "../kube/api/pod.ts";
import type { Cluster } from "./cluster.ts";
import { STANDING_COLUMNS, standing, type Column, type Standing } from "./columns.ts";
import { hasStarted } from "./conditions.ts";
import { firstFinding } from "./diagnose.ts";
import { createdAt, field, idOf, isDeleting, nameOf, textAt, textsAt } from "./fields.ts";
import { leftover } from "./leftovers.ts";
import { says, wordsOf, type Finding } from "./reasons/reasons.ts";
import { claimView, persistentVolumeView, remoteViewsOf, type VolumeView } from "./volume-view.ts";

/** One claim of one pod; or a claim, or a PersistentVolume, that nobody uses. */
export interface VolumeRow extends Standing {
  readonly namespace: string;
  readonly pod: string;
  readonly claim: string;
  readonly volume: string;
  readonly node: string;
  readonly driver: string;
  readonly size: string;
  readonly access: string;
  readonly storageClass: string;
}

export const VOLUME_COLUMNS: readonly Column<VolumeRow>[] = [
  { title: "NAMESPACE", namespaces: true, text: ({ namespace }) => namespace },
  { title: "POD", text: ({ pod }) => pod },
  { title: "CLAIM", text: ({ claim }) => claim },
  { title: "VOLUME", text: ({ volume }) => volume },
  { title: "NODE", text: ({ node }) => node },
  { title: "SIZE", wide: true, text: ({ size }) => size },
  { title: "ACCESS", wide: true, text: ({ access }) => access },
  { title: "CLASS", wide: true, text: ({ storageClass }) => storageClass },
  { title: "DRIVER", wide: true, text: ({ driver }) => driver },
  ...STANDING_COLUMNS,
];

/**
 * Claims of pods first, then claims without a pod, then volumes without a claim. A view is looked at and let go before
 * the next is made: ten thousand kept at once cost more to keep than to make.
 */
export function volumeRows(cluster: Cluster): readonly VolumeRow[] {
  const { pods, claims, volumes } = cluster.objects;
  const rows: VolumeRow[] = [];
  const [taken, bound] = [new Set<string>(), new Set<string>()];
  const add = (view: VolumeView) => {
    taken.add(view.claimId);
    bound.add(view.pvName);
    rows.push(rowOf(view));
  };
  for (const pod of pods) if (!isOver(pod)) remoteViewsOf(cluster, pod).forEach(add);
  for (const claim of claims) {
    const id = idOf(claim);
    if (!taken.has(id)) add(claimView(cluster, claim, id));
  }
  for (const pv of volumes) if (!bound.has(nameOf(pv))) rows.push(rowOf(persistentVolumeView(cluster, pv)));
  return rows;
}

function isOver(pod: Pod): boolean {
  const phase = textAt(pod, "status", "phase");
  return phase === "Succeeded" || phase === "Failed";
}

function rowOf(view: VolumeView): VolumeRow {
  const { pod, claim, claimId, pv, pvName, cluster } = view;
  const finding = firstFinding(view);
  const left = pod === undefined ? leftoverOf(cluster, pvName) : undefined;
  const namespace = textAt(pod, "metadata", "namespace") || textAt(claim, "metadata", "namespace");
  const holders = cluster.attachmentsOf(pvName).map((item) => textAt(item, "spec", "nodeName"));
  return Object.assign(standingOf(view, finding ?? left), {
    namespace,
    pod: nameOf(pod),
    claim: claimId.split("/")[1] ?? "",
    volume: pvName,
    node: view.nodeName || holders.join(","),
    driver: view.driver,
    size: textAt(claim, "status", "capacity", "storage") || textAt(pv, "spec", "capacity", "storage"),
    access: textsAt(claim ?? pv, "spec", "accessModes").join(","),
    storageClass: textAt(claim ?? pv, "spec", "storageClassName"),
  });
}

function leftoverOf(cluster: Cluster, pvName: string): Finding | undefined {
  for (const item of cluster.attachmentsOf(pvName)) {
    const finding = leftover(cluster, item);
    if (finding !== undefined) return finding;
  }
  return undefined;
}

function standingOf(view: VolumeView, finding: Finding | undefined): Standing {
  const key = `${idOf(view.pod)} ${view.volumeName} ${view.claimId} ${view.pvName}`;
  const state = finding === undefined || hasStarted(view.pod) ? quietState(view) : wordsOf(finding).state;
  return standing(key, state, {
    sinceMs: finding?.sinceMs ?? createdAt(view.attachment) ?? createdAt(view.pod ?? view.claim ?? view.pv),
    reason: finding?.reason,
    why: finding && says(finding),
  });
}

function quietState({ cluster, pod, pv, claim, pvName }: VolumeView): string {
  if (hasStarted(pod)) return isDeleting(pod) ? "ending" : "mounted";
  if (cluster.attachmentsOf(pvName).some((item) => field(item, "status", "attached") === true))
    return "attached";
  return (textAt(claim, "status", "phase") || textAt(pv, "status", "phase") || "unknown").toLowerCase();
}
