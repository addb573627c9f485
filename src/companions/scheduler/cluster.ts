import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { keyOf, toKey, type ObjectKey } from "../../kube/object.ts";
import { classNameOf } from "../claims.ts";
import { BY_CLAIM, BY_DRIVER, BY_NODE, FREE_BY_CLASS, REPELLING, type SchedulerCaches } from "./caches.ts";
import type { Placements } from "./placements.ts";
import type { ClusterView, NodeView } from "./view.ts";

/** The caches and the placements, as a plan for `pod` reads them; without the pod itself. Good for one plan. */
export function viewFor(pod: Pod, caches: SchedulerCaches, placements: Placements): ClusterView {
  const ownKey = keyOf(pod);
  const nodeNameOf = (other: Pod) => other.spec?.nodeName || placementOf(other)?.node;
  const counts = (other: Pod) => !hasEnded(other) && keyOf(other) !== ownKey;

  function placementOf(other: Pod) {
    const placement = placements.get(keyOf(other));
    return placement?.uid === other.metadata.uid ? placement : undefined;
  }

  function* arrivingAt(node: string): Iterable<readonly [Pod, readonly PersistentVolume[]]> {
    for (const key of placements.on(node)) {
      const found = caches.pods.get(key);
      const placement = found && placementOf(found);
      if (placement && !found.spec?.nodeName && counts(found)) yield [found, placement.promised];
    }
  }

  function nodeView(name: string, node: NodeView["node"]): NodeView {
    const arriving = new Map(arrivingAt(name));
    const there = caches.pods.byIndex(BY_NODE, name).filter(counts);
    return {
      name,
      node,
      csiNode: caches.csiNodes.get(toKey({ name })),
      pods: [...there, ...arriving.keys()],
      planned: arriving,
      attachments: caches.attachments.byIndex(BY_NODE, name),
    };
  }

  return {
    nodes: [...caches.nodes.objects()].map((node) => nodeView(node.metadata.name ?? "", node)),
    claim: (key) => caches.claims.get(key),
    volume: (name) => caches.volumes.get(toKey({ name })),
    storageClass: (name) => (name === "" ? undefined : caches.classes.get(toKey({ name }))),
    candidates: (claim) => [
      ...caches.volumes.byIndex(BY_CLAIM, keyOf(claim)),
      ...caches.volumes.byIndex(FREE_BY_CLASS, classNameOf(claim) ?? ""),
    ],
    isCsiDriver: (name) =>
      caches.csiDrivers.get(toKey({ name })) !== undefined ||
      caches.csiNodes.byIndex(BY_DRIVER, name).length > 0,
    podsUsing: (claim: ObjectKey) =>
      caches.pods
        .byIndex(BY_CLAIM, claim)
        .filter((other) => counts(other) && nodeNameOf(other) !== undefined),
    repelling: () =>
      caches.pods.byIndex(REPELLING, REPELLING).flatMap((other) => {
        const nodeName = nodeNameOf(other);
        return counts(other) && nodeName !== undefined ? [{ pod: other, nodeName }] : [];
      }),
  };
}

/** It needs nothing any more; its object may stay for days. */
export function hasEnded({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}
