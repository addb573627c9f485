import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import {
  candidateNodes,
  isCordoned,
  nodelessVolume,
  taintsInWords,
  type CandidateNodes,
} from "../candidate-nodes.ts";
import { createdAt, idOf, isDeleting, nameOf, objectsAt, oneLine, textAt, textsAt } from "../fields.ts";
import { hasStarted, readinessOf } from "../conditions.ts";
import type { Evidence, Finding, Reason } from "../reasons/reasons.ts";
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
  const { names, ...judged } = judge(view, pod, message, reason);
  return found(judged.reason, view, {
    names: { message: oneLine(message), ...names },
    besides: judged.besides,
    evidence: [evidence, ...(judged.evidence ?? [])],
    sinceMs: createdAt(pod),
  });
};

/** `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) …`, and after that what a preemption would have done. */
const PARTS = /^\d+\/\d+ nodes are available: (.*?)\.(?: preemption:.*)?$/s;
const CORDONED = /were unschedulable|node\.kubernetes\.io\/unschedulable/;
const TAINTED = /untolerated taint/i;
const UNSELECTED = /didn't match Pod's node affinity|node selector/i;

function partsOf(message: string): readonly string[] {
  return PARTS.exec(message)?.[1]?.split(/, (?=\d+ )/) ?? [];
}

/**
 * The one thing that keeps the pod from every node where it may be. Where some node lacks something else, as memory, that is as
 * good a reason as the others, and none is singled out: "no node matches" would be wrong.
 */
function meaningOf(message: string): Reason {
  const isElse = (part: string) =>
    /^\d+ /.test(part) && !CORDONED.test(part) && !MEANINGS.some(([pattern]) => pattern.test(part));
  if (partsOf(message).some(isElse)) return "unschedulable";
  return MEANINGS.find(([pattern]) => pattern.test(message))?.[1] ?? "unschedulable";
}

interface Judged {
  readonly reason: Reason;
  readonly names?: Finding["names"];
  readonly besides?: string | undefined;
  readonly evidence?: readonly Evidence[];
}

/**
 * A scheduler tells of each node the first thing that is in the way, and looks at cordons and taints before it looks at the
 * selector: what of that counts, because the pod may be on the node at all, only the objects say.
 */
function judge({ cluster }: VolumeView, pod: Pod, message: string, told: Reason): Judged {
  const besides = told === "unschedulable-volume" ? nodelessVolume(cluster, pod) : undefined;
  const asTold: Judged = { reason: told, besides };
  if (!cluster.knows("nodes") || cluster.objects.nodes.length === 0) return asTold;
  const candidates = candidateNodes(cluster, pod);
  const { tolerable, cordoned } = candidates;
  const isOfCordons = CORDONED.test(message) && cordoned.length > 0;
  if (isOfCordons && cordoned.length === tolerable.length) return allCordoned(cordoned);
  const judged = isOnlyOfNodes(message) ? ofNodes(candidates, pod, asTold) : asTold;
  return isOfCordons ? { ...judged, besides: `cordoned: ${cordoned.map(nameOf).join(", ")}` } : judged;
}

function allCordoned(cordoned: readonly Node[]): Judged {
  const names = cordoned.map(nameOf);
  const silent = cordoned.filter((node) => !readinessOf(node).ready).map(nameOf);
  return {
    reason: "unschedulable-cordoned",
    names: { nodes: names.join(", "), first: names[0] ?? "" },
    ...(silent.length > 0 && { besides: `not ready either: ${silent.join(", ")}` }),
    evidence: names.map((name) => seen(`Node ${name}`, "spec.unschedulable", true)),
  };
}

/** Nothing in it is of a node that the scheduler would have the pod on, were there room and the volumes. */
function isOnlyOfNodes(message: string): boolean {
  const parts = partsOf(message);
  return (
    parts.length > 0 &&
    parts.every((part) => [CORDONED, TAINTED, UNSELECTED].some((pattern) => pattern.test(part)))
  );
}

function ofNodes({ selected, reachable, tolerable }: CandidateNodes, pod: Pod, asTold: Judged): Judged {
  const allowed = `its selector and affinity allow ${selected.map(nameOf).join(", ")}`;
  if (selected.length === 0) return { reason: "unschedulable-affinity" };
  if (reachable.length === 0) return { reason: "unschedulable-volume", besides: allowed };
  if (tolerable.length === 0) return allTainted(reachable, pod, asTold);
  if (asTold.reason !== "unschedulable-affinity") return asTold;
  return { reason: "unschedulable", besides: `${allowed} now` };
}

/** Where one is cordoned too, the scheduler speaks of that alone. */
function allTainted(nodes: readonly Node[], pod: Pod, asTold: Judged): Judged {
  const cordoned = nodes.filter(isCordoned);
  if (asTold.reason === "unschedulable-taint" && cordoned.length === 0) return asTold;
  const words = nodes.map(
    (node) => `${nameOf(node)} has ${taintsInWords(pod, node)}${isCordoned(node) ? " and is cordoned" : ""}`,
  );
  return {
    reason: "unschedulable-taint",
    besides: words.join(", "),
    evidence: nodes.map((node) => seen(`Node ${nameOf(node)}`, "spec.taints", taintsInWords(pod, node))),
  };
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
