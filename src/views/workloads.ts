import type { Pod } from "../kube/api/pod.ts";
import type { KubeObject } from "../kube/object.ts";
import { parseQuantity } from "../kube/quantity.ts";
import type { ChainLink } from "./chain.ts";
import { seen } from "./checks/check.ts";
import type { Cluster } from "./cluster.ts";
import { hasStarted, waitingContainer } from "./conditions.ts";
import { contradictionsOf, inWords } from "./consistency/contradictions.ts";
import { diagnosePod } from "./diagnose.ts";
import {
  createdAt,
  field,
  idOf,
  isDeleting,
  nameOf,
  numberAt,
  objectsAt,
  oneLine,
  textAt,
} from "./fields.ts";
import type { Evidence, Finding } from "./reasons/reasons.ts";
import { told } from "./told.ts";
import { volumeViewsOf } from "./volume-view.ts";

/** A StatefulSet or Deployment, and what its sentences need. */
export interface Workload {
  readonly cluster: Cluster;
  readonly kind: "StatefulSet" | "Deployment";
  readonly object: KubeObject;
  readonly ns: string;
  readonly name: string;
  readonly replicas: number;
}

export function workloadOf(cluster: Cluster, kind: Workload["kind"], object: KubeObject): Workload {
  const replicas = numberAt(object, "spec", "replicas") ?? 1;
  return {
    cluster,
    kind,
    object,
    ns: textAt(object, "metadata", "namespace"),
    name: nameOf(object),
    replicas,
  };
}

export function namesOf({ kind, ns, name }: Workload): Readonly<Record<string, string>> {
  return { kind, resource: kind.toLowerCase(), ns, workload: name };
}

/** The first sentence has named the workload already. */
export function leadOf({ kind, ns, name }: Workload, at: string, blocks: string): string {
  return `${kind} ${ns}/${name} is stuck${at}: ${blocks.replace(` of ${kind} ${ns}/${name}`, "")}`;
}

export function isReady(pod: Pod | undefined): boolean {
  return objectsAt(pod, "status", "conditions").some(
    (item) => textAt(item, "type") === "Ready" && textAt(item, "status") === "True",
  );
}

/** Why something of the workload could not be made, as the API server answered its controller. */
export function creationFailure(
  workload: Workload,
  {
    what,
    message,
    evidence,
  }: { readonly what: string; readonly message: string; readonly evidence: Evidence },
): Finding {
  const names = { ...namesOf(workload), what, message: oneLine(message) };
  const known = { evidence: [evidence], sinceMs: createdAt(workload.object) };
  const [, quota, usage] = /exceeded quota: ([^\s,]+), (.+)/.exec(message) ?? [];
  if (quota !== undefined && usage !== undefined)
    return told("workload-quota", { ...names, quota, usage }, known);
  const isRefusal = /forbidden|denied|violates|admission/i.test(message);
  return told(isRefusal ? "workload-denied" : "workload-create-failed", names, known);
}

/** No event is left that says why: a quota without room says it as well, and otherwise nobody does. */
export function notMade(
  workload: Workload,
  what: string,
  { claimMissing = false }: { readonly claimMissing?: boolean } = {},
): Finding {
  const { cluster, kind, object, ns, name } = workload;
  const full = usedUpQuota(cluster, ns, claimMissing ? [...POD_COUNTS, ...CLAIM_COUNTS] : POD_COUNTS);
  const sinceMs = createdAt(object);
  const status = seen(
    `${kind} ${ns}/${name}`,
    "status.observedGeneration",
    field(object, "status", "observedGeneration"),
  );
  if (full === undefined) {
    const evidence = [
      status,
      seen(
        `Events of ${kind} ${ns}/${name}`,
        "FailedCreate",
        cluster.knows("events") ? "" : "not permitted to read",
      ),
    ];
    return told("workload-pod-not-made", { ...namesOf(workload), what }, { evidence, sinceMs });
  }
  const { quota, resource, used, hard } = full;
  const evidence = [seen(`ResourceQuota ${ns}/${quota}`, `status.used[${resource}]`, `${used} of ${hard}`)];
  const names = { ...namesOf(workload), what, quota, usage: `${resource}: ${used} of ${hard} used` };
  return told("workload-quota", names, { evidence, sinceMs });
}

/** Counted in pieces, so that one more certainly does not fit. */
const POD_COUNTS = ["pods", "count/pods"];
const CLAIM_COUNTS = ["persistentvolumeclaims", "count/persistentvolumeclaims"];

interface FullQuota {
  readonly quota: string;
  readonly resource: string;
  readonly used: string;
  readonly hard: string;
}

function usedUpQuota({ objects }: Cluster, ns: string, resources: readonly string[]): FullQuota | undefined {
  for (const quota of objects.resourceQuotas) {
    if (textAt(quota, "metadata", "namespace") !== ns) continue;
    for (const resource of resources) {
      const [used, hard] = ["used", "hard"].map((key) => textAt(quota, "status", key, resource));
      if (used && hard && isAtLeast(used, hard)) return { quota: nameOf(quota), resource, used, hard };
    }
  }
  return undefined;
}

function isAtLeast(used: string, hard: string): boolean {
  try {
    return parseQuantity(used).nanos >= parseQuantity(hard).nanos;
  } catch {
    return false;
  }
}

/** Everything about one pod that is not ready: its volumes first, then that it is not their doing. */
export function unreadyFindings(workload: Workload, pod: Pod, then: string): readonly Finding[] {
  const ofVolumes = diagnosePod(workload.cluster, pod).map(({ finding }) => finding);
  const phase = textAt(pod, "status", "phase");
  const names = { ...namesOf(workload), pod: idOf(pod), podName: nameOf(pod), phase };
  const sinceMs = createdAt(pod);
  if (phase === "Failed" || phase === "Succeeded") {
    const message = textAt(pod, "status", "message") || textAt(pod, "status", "reason") || "no message";
    return [
      told(
        "workload-pod-over",
        { ...names, message: oneLine(message) },
        { evidence: [seen(`Pod ${idOf(pod)}`, "status.phase", phase)], sinceMs },
      ),
    ];
  }
  if (!hasStarted(pod)) return ofVolumes;
  const message = isDeleting(pod)
    ? "it is ending"
    : (waitingContainer(pod)?.message ?? (readyMessage(pod) || "its readiness probe does not succeed"));
  const evidence = [seen(`Pod ${idOf(pod)}`, "status.conditions[Ready]", readyMessage(pod) || "False")];
  return [
    ...ofVolumes,
    told("workload-pod-not-ready", { ...names, message: oneLine(message), then }, { evidence, sinceMs }),
  ];
}

function readyMessage(pod: Pod): string {
  const ready = objectsAt(pod, "status", "conditions").find((item) => textAt(item, "type") === "Ready");
  return textAt(ready, "message");
}

export function workloadLink({ kind, object, ns, name, replicas }: Workload): ChainLink {
  const ready = numberAt(object, "status", "readyReplicas") ?? 0;
  const id = `${kind} ${ns}/${name}`;
  return {
    link: "workload",
    object: `${ns}/${name}`,
    state: isDeleting(object) ? "deleting" : `${ready} of ${replicas} ready`,
    sinceMs: createdAt(object),
    evidence: [seen(id, "spec.replicas", replicas), seen(id, "status.readyReplicas", ready)],
  };
}

/** Of the volumes of all its pods. */
export function contradictionsIn({ cluster }: Workload, pods: readonly Pod[]): readonly string[] {
  return pods
    .flatMap((pod) => volumeViewsOf(cluster, pod))
    .flatMap(contradictionsOf)
    .map(inWords);
}

/** A line about one pod of a workload. */
export function podLine(pod: Pod): string {
  const node = textAt(pod, "spec", "nodeName");
  const state = isDeleting(pod)
    ? "ending"
    : isReady(pod)
      ? "ready"
      : textAt(pod, "status", "phase").toLowerCase() || "not ready";
  return `pod ${nameOf(pod)}: ${state}${node === "" ? "" : ` on node ${node}`}`;
}
