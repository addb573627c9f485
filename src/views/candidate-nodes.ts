import type { Node } from "../kube/api/node.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import { claimKeysOf } from "../volumes/resolve.ts";
import type { Cluster } from "./cluster.ts";
import { field, nameOf, objectsAt, textAt } from "./fields.ts";
import { matchesNodeAffinity, termsInWords } from "./node-terms.ts";
import { selects, untolerated } from "./placing.ts";

/** Nodes by what the objects say of a pod on them, each list a part of the one before. */
export interface CandidateNodes {
  /** Which its selector and affinity allow. */
  readonly selected: readonly Node[];
  /** Where its volumes may be too. */
  readonly reachable: readonly Node[];
  /** Whose taints it tolerates too. */
  readonly tolerable: readonly Node[];
  /** Of these, the ones that somebody closed to new pods. */
  readonly cordoned: readonly Node[];
}

export function candidateNodes(cluster: Cluster, pod: Pod): CandidateNodes {
  const terms = volumesOf(cluster, pod)
    .map(termsOf)
    .filter((list) => list.length > 0);
  const selected = cluster.objects.nodes.filter((node) => selects(pod, node));
  const reachable = selected.filter((node) => terms.every((list) => matchesNodeAffinity(node, list)));
  const tolerable = reachable.filter((node) => untolerated(pod, node).length === 0);
  return { selected, reachable, tolerable, cordoned: tolerable.filter(isCordoned) };
}

export function isCordoned(node: Node): boolean {
  return field(node, "spec", "unschedulable") === true;
}

/** `dedicated=db:NoSchedule`, as kubectl writes them. */
export function taintsInWords(pod: Pod, node: Node): string {
  const words = untolerated(pod, node).map((taint) => {
    const [key, value, effect] = ["key", "value", "effect"].map((name) => textAt(taint, name));
    return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
  });
  return words.join(", ");
}

/** A volume of which no node is left, as a local disk whose machine was replaced. */
export function nodelessVolume(cluster: Cluster, pod: Pod): string | undefined {
  if (!cluster.knows("nodes")) return undefined;
  for (const volume of volumesOf(cluster, pod)) {
    const terms = termsOf(volume);
    if (terms.length > 0 && !cluster.objects.nodes.some((node) => matchesNodeAffinity(node, terms)))
      return `PersistentVolume ${nameOf(volume)} is only for nodes where ${termsInWords(terms)}, and there is none`;
  }
  return undefined;
}

function volumesOf(cluster: Cluster, pod: Pod): readonly (PersistentVolume | undefined)[] {
  return claimKeysOf(pod).map((key) =>
    cluster.find("volumes", textAt(cluster.find("claims", key), "spec", "volumeName")),
  );
}

function termsOf(volume: PersistentVolume | undefined): readonly object[] {
  return objectsAt(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms");
}
