import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { Delta } from "../../kube/informer/store.ts";
import { keyOf, type ObjectKey } from "../../kube/object.ts";
import { jsonEqual } from "../../kube/patch/json.ts";
import { BY_CLAIM, type SchedulerCaches } from "./caches.ts";
import { hasEnded } from "./cluster.ts";
import type { Placements } from "./placements.ts";
import type { Blocker } from "./view.ts";
import type { Waits } from "./waits.ts";

export interface WakeDeps {
  readonly caches: SchedulerCaches;
  readonly placements: Placements;
  readonly waits: Waits;
  readonly look: (pod: ObjectKey) => void;
}

/** From a change to the pods whose plan it may change. Answers how to leave. */
export function listen({ caches, placements, waits, look }: WakeDeps): () => void {
  const wake = (blocker: Blocker) => waits.on(blocker).forEach(look);

  function onPod(delta: Delta<Pod>): void {
    const { kind, key, object } = delta;
    const old = kind === "updated" ? delta.old : undefined;
    if (kind === "deleted") {
      waits.clear(key);
      placements.drop(key);
      wake("room");
      return;
    }
    if (object.spec?.nodeName) {
      if (!old?.spec?.nodeName) onPlaced(key);
      if (isLeaving(object) && !(old && isLeaving(old))) wake("room");
      return;
    }
    if (!old || !isOnlyStatus(old, object)) look(key);
  }

  function onPlaced(key: ObjectKey): void {
    waits.clear(key);
    placements.drop(key);
    wake("pod");
  }

  function lookAtUsers(claim: string): void {
    for (const pod of caches.pods.byIndex(BY_CLAIM, claim)) if (!pod.spec?.nodeName) look(keyOf(pod));
  }

  const leave = [
    caches.pods.addHandler(onPod),
    caches.claims.addHandler(({ key }) => lookAtUsers(key)),
    caches.volumes.addHandler(({ object }) => {
      const { claimRef } = object.spec ?? {};
      if (claimRef) lookAtUsers(`${claimRef.namespace}/${claimRef.name}`);
      wake("volume");
    }),
    caches.classes.addHandler(() => wake("class")),
    caches.nodes.addHandler((delta) => {
      if (delta.kind !== "updated" || !isSameToPods(delta.old, delta.object)) wake("node");
    }),
    caches.csiNodes.addHandler(() => wake("node")),
    caches.csiDrivers.addHandler(() => wake("node")),
    caches.attachments.addHandler(({ kind }) => {
      if (kind === "deleted") wake("room");
    }),
  ];
  return () => leave.forEach((end) => end());
}

/** Its place is free, or is about to be. */
function isLeaving(pod: Pod): boolean {
  return hasEnded(pod) || Boolean(pod.metadata.deletionTimestamp);
}

/** Our own word about a pod is no news about it. */
function isOnlyStatus(old: Pod, pod: Pod): boolean {
  return (
    old !== pod &&
    old.metadata.deletionTimestamp === pod.metadata.deletionTimestamp &&
    jsonEqual(old.metadata.labels ?? {}, pod.metadata.labels ?? {}) &&
    jsonEqual(old.spec ?? {}, pod.spec ?? {}) &&
    hasEnded(old) === hasEnded(pod)
  );
}

/** A node is heard of every few seconds, and hardly ever changes. */
function isSameToPods(old: Node, node: Node): boolean {
  const of = ({ metadata, spec, status }: Node) => ({
    labels: metadata.labels ?? {},
    taints: spec?.taints ?? [],
    unschedulable: spec?.unschedulable ?? false,
    ready: status?.conditions?.find(({ type }) => type === "Ready")?.status ?? "",
    allocatable: status?.allocatable ?? {},
  });
  return old !== node && jsonEqual(of(old), of(node));
}
