import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { Cluster } from "../cluster.ts";
import { claimKeysOf } from "../../volumes/resolve.ts";
import {
  createdAt,
  field,
  idOf,
  isDeleting,
  nameOf,
  objectsAt,
  oneLine,
  textAt,
  textsAt,
} from "../fields.ts";
import { matchesNodeAffinity, termsInWords } from "../node-terms.ts";
import { mayBeOn } from "../placing.ts";
import { hasStarted } from "../conditions.ts";
import type { Evidence, Reason } from "../reasons/reasons.ts";
import type { VolumeView } from "../volume-view.ts";
import { found, seen, type Check } from "./check.ts";

/** What the parts of the scheduler's message mean, most telling first: it lists every reason of every node in one line. */
const MEANINGS: readonly (readonly [RegExp, Reason])[] = [
  [/exceed max volume count/i, "unschedulable-limit"],
  [/ReadWriteOncePod/i, "held-by-other-pod"],
  [
    /volume node affinity conflict|didn't find available persistent volumes|no available volume zone/i,
    "unschedulable-volume",
  ],
  [/untolerated taint/i, "unschedulable-taint"],
  [/didn't match Pod's node affinity|node selector|pod affinity|anti-affinity/i, "unschedulable-affinity"],
];

export const unschedulable: Check = (view) => {
  const { pod, cluster } = view;
  if (pod === undefined || view.nodeName !== "" || hasStarted(pod)) return undefined;
  const gates = objectsAt(pod, "spec", "schedulingGates").map((gate) => textAt(gate, "name"));
  const named = `Pod ${idOf(pod)}`;
  if (gates.length > 0) {
    const evidence = [seen(named, "spec.schedulingGates", gates)];
    return found("scheduling-gated", view, { names: { gates: gates.join(", ") }, evidence });
  }
  const said = schedulerSays(view);
  if (said === undefined) {
    const scheduler = textAt(pod, "spec", "schedulerName") || "default-scheduler";
    const evidence = [seen(named, "spec.nodeName", "")];
    if (!cluster.knows("events")) evidence.push(seen("Events", "list", "not permitted"));
    return found("scheduler-silent", view, { names: { scheduler }, evidence, sinceMs: createdAt(pod) });
  }
  const { message, evidence } = said;
  const reason = meaningOf(message);
  // Which pod has the claim is known from the objects, and said by the check for that.
  if (reason === "held-by-other-pod") return undefined;
  const names = { message: oneLine(message) };
  const cordoned = cordonedOf(view, message);
  if (cordoned !== undefined && cordoned.all)
    return found("unschedulable-cordoned", view, {
      names: { ...names, nodes: cordoned.names.join(", "), first: cordoned.names[0] ?? "" },
      evidence: [evidence, ...cordoned.names.map((name) => seen(`Node ${name}`, "spec.unschedulable", true))],
      sinceMs: createdAt(pod),
    });
  const besides =
    (cordoned && `cordoned: ${cordoned.names.join(", ")}`) ??
    (reason === "unschedulable-volume" ? nodeless(view) : undefined);
  return found(reason, view, { names, besides, evidence: [evidence], sinceMs: createdAt(pod) });
};

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) …`, and after that what a preemption would have done. */
const PARTS = /^\d+\/\d+ nodes are available: (.*?)\.(?: preemption:.*)?$/s;
const CORDONED = /were unschedulable|node\.kubernetes\.io\/unschedulable/;

/**
 * The one thing that keeps the pod from every node where it may be. Where some node lacks something else, as memory, that is as
 * good a reason as the others, and none is singled out: "no node matches" would be wrong.
 */
function meaningOf(message: string): Reason {
  const counted = PARTS.exec(message)?.[1]?.split(/, (?=\d+ )/) ?? [];
  const isElse = (part: string) =>
    /^\d+ /.test(part) && !CORDONED.test(part) && !MEANINGS.some(([pattern]) => pattern.test(part));
  if (counted.some(isElse)) return "unschedulable";
  return MEANINGS.find(([pattern]) => pattern.test(message))?.[1] ?? "unschedulable";
}

/** A volume of which no node is left, as a local disk whose machine was replaced. */
function nodeless({ cluster, pod }: VolumeView): string | undefined {
  if (!cluster.knows("nodes")) return undefined;
  for (const volume of volumesOf(cluster, pod as Pod)) {
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

/**
 * Nodes that somebody closed to new pods, among those where the pod and its volumes may be. `all` where no other is left: then
 * nothing else about the others matters.
 */
function cordonedOf(
  { cluster, pod }: VolumeView,
  message: string,
): { readonly names: readonly string[]; readonly all: boolean } | undefined {
  if (!CORDONED.test(message) || !cluster.knows("nodes")) return undefined;
  const terms = volumesOf(cluster, pod as Pod)
    .map(termsOf)
    .filter((list) => list.length > 0);
  const fitting = cluster.objects.nodes.filter(
    (node) => mayBeOn(pod as Pod, node) && terms.every((list) => matchesNodeAffinity(node, list)),
  );
  const cordoned = fitting.filter((node) => field(node, "spec", "unschedulable") === true);
  if (cordoned.length === 0) return undefined;
  return { names: cordoned.map(nameOf), all: cordoned.length === fitting.length };
}

/**
 * From the condition, which says what is so now; of two events within a second nobody knows which came last, and events
 * that say the same are not written again. From an event where a scheduler writes no message there.
 */
function schedulerSays({ cluster, pod }: VolumeView): { message: string; evidence: Evidence } | undefined {
  const id = idOf(pod);
  const conditions = objectsAt(pod, "status", "conditions");
  const scheduled = conditions.find((item) => textAt(item, "type") === "PodScheduled");
  const now = textAt(scheduled, "status") === "False" ? textAt(scheduled, "message") : "";
  if (now !== "")
    return { message: now, evidence: seen(`Pod ${id}`, "status.conditions[PodScheduled]", now) };
  const event = cluster.eventsOf("Pod", id).find((item) => textAt(item, "reason") === "FailedScheduling");
  const message = textAt(event, "message");
  if (message === "") return undefined;
  return { message, evidence: seen(`Event of Pod ${id}`, "FailedScheduling", message) };
}

/** ReadWriteOncePod: one pod in the whole cluster, also on one node. */
export const heldByOtherPod: Check = (view) => {
  const { cluster, pod, claim } = view;
  if (pod === undefined || hasStarted(pod)) return undefined;
  if (!textsAt(claim, "spec", "accessModes").includes("ReadWriteOncePod")) return undefined;
  const others = cluster.podsOfClaim(view.claimId).filter((item) => idOf(item) !== idOf(pod));
  const other = others.find(hasStarted) ?? others.find((item) => textAt(item, "spec", "nodeName") !== "");
  if (other === undefined) return undefined;
  const state = isDeleting(other) ? "ending" : textAt(other, "status", "phase") || "unknown";
  return found("held-by-other-pod", view, {
    names: { other: idOf(other), otherName: textAt(other, "metadata", "name"), otherState: state },
    evidence: [
      seen(`PersistentVolumeClaim ${view.claimId}`, "spec.accessModes", "ReadWriteOncePod"),
      seen(`Pod ${idOf(other)}`, "status.phase", state),
    ],
  });
};
