import type { Pod } from "../kube/api/pod.ts";
import { chainOf } from "./chain.ts";
import { seen } from "./checks/check.ts";
import type { Cluster } from "./cluster.ts";
import { hasStarted } from "./conditions.ts";
import { diagnosePod, type Diagnosed } from "./diagnose.ts";
import { explanation, type Explanation } from "./explanation.ts";
import {
  createdAt,
  field,
  idOf,
  isDeleting,
  nameOf,
  numberAt,
  objectsAt,
  textAt,
  textsAt,
} from "./fields.ts";
import type { Finding } from "./reasons/reasons.ts";
import { counted, told } from "./told.ts";
import { volumeViewsOf } from "./volume-view.ts";
import {
  contradictionsIn,
  creationFailure,
  isReady,
  leadOf,
  namesOf,
  notMade,
  podLine,
  unreadyFindings,
  workloadLink,
  workloadOf,
  type Workload,
} from "./workloads.ts";

const LINES_MAX = 10;

/** What makes another pod's claim the cause: these name it. */
const HELD_BY_POD = new Set<string>(["held-by-running-pod", "held-by-other-pod"]);

/** A Deployment: pods that are never made, pods that wait for each other, and what any other pod of it waits for. */
export function explainDeployment(cluster: Cluster, id: string): Explanation | undefined {
  const object = cluster.find("deployments", id);
  if (object === undefined) return undefined;
  const deployment = workloadOf(cluster, "Deployment", object);
  const pods = podsOf(deployment);
  const diagnosed = pods.flatMap((pod) => diagnosePod(cluster, pod).slice(0, 1));
  const shown =
    diagnosed[0]?.view ??
    pods.flatMap((pod) => volumeViewsOf(cluster, pod)).find(({ claimId }) => claimId !== "");
  return explanation(cluster, {
    subject: `Deployment ${id}`,
    lead: (blocks) => leadOf(deployment, "", blocks),
    healthy: healthy(deployment, pods),
    findings: [
      ...creationFindings(deployment, pods),
      ...diagnosed.flatMap((item) => selfHeld(deployment, pods, item) ?? []),
      ...pods
        .filter((pod) => !isReady(pod))
        .flatMap((pod) => unreadyFindings(deployment, pod, "its Deployment waits for it")),
      ...diagnosed.filter(({ view }) => isReady(view.pod)).map(({ finding }) => finding),
    ],
    chain: [workloadLink(deployment), ...(shown === undefined ? [] : chainOf(shown))],
    others: linesOf(pods),
    facts: sharedClaims(deployment, pods),
    contradictions: contradictionsIn(deployment, pods),
  });
}

/** Pods that are never made, for those who look at many; what a pod waits for is told of the pod. */
export function firstDeploymentFinding(cluster: Cluster, object: Workload["object"]): Finding | undefined {
  const deployment = workloadOf(cluster, "Deployment", object);
  return creationFindings(deployment, podsOf(deployment))[0];
}

/** By `namespace/name` of the Deployment: a pod belongs to a ReplicaSet, which is named after its Deployment. */
const podsOfDeployment = new WeakMap<Cluster, ReadonlyMap<string, readonly Pod[]>>();

function podsOf({ cluster, ns, name }: Workload): readonly Pod[] {
  const known = podsOfDeployment.get(cluster) ?? groupPods(cluster);
  podsOfDeployment.set(cluster, known);
  return known.get(`${ns}/${name}`) ?? [];
}

/** Once for a cluster: a thousand Deployments that each look through ten thousand pods would take seconds. */
function groupPods({ objects }: Cluster): ReadonlyMap<string, readonly Pod[]> {
  const groups = new Map<string, Pod[]>();
  for (const pod of objects.pods) {
    const owner = deploymentOf(pod);
    if (owner === "" || isOver(pod)) continue;
    const id = `${textAt(pod, "metadata", "namespace")}/${owner}`;
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [pod]);
    else group.push(pod);
  }
  return groups;
}

function isOver(pod: Pod): boolean {
  return textAt(pod, "status", "phase") === "Succeeded";
}

function deploymentOf(pod: Pod): string {
  return replicaSetOf(pod).replace(/-[^-]+$/, "");
}

function replicaSetOf(pod: Pod | undefined): string {
  const owner = objectsAt(pod, "metadata", "ownerReferences").find(
    (item) => textAt(item, "kind") === "ReplicaSet",
  );
  return textAt(owner, "name");
}

/** Its controller's own word, or an event of the ReplicaSet that should have made the pod. */
function creationFindings(deployment: Workload, pods: readonly Pod[]): readonly Finding[] {
  const { cluster, object, ns, name, replicas } = deployment;
  const live = pods.filter((pod) => !isDeleting(pod)).length;
  if (live >= replicas || !cluster.knows("pods", ns)) return [];
  const what = replicas - live === 1 ? "a pod" : `${counted(replicas - live, "pod")} of ${replicas}`;
  const failure = objectsAt(object, "status", "conditions").find(
    (item) => textAt(item, "type") === "ReplicaFailure",
  );
  const message = textAt(failure, "status") === "True" ? textAt(failure, "message") : "";
  if (message !== "") {
    const evidence = seen(`Deployment ${ns}/${name}`, "status.conditions[ReplicaFailure]", message);
    return [creationFailure(deployment, { what, message, evidence })];
  }
  for (const set of replicaSets(deployment)) {
    const event = cluster
      .eventsOf("ReplicaSet", `${ns}/${nameOf(set)}`)
      .find((item) => textAt(item, "reason") === "FailedCreate");
    if (event === undefined) continue;
    const said = textAt(event, "message");
    const evidence = seen(`Event of ReplicaSet ${ns}/${nameOf(set)}`, "FailedCreate", said);
    return [creationFailure(deployment, { what, message: said.replace(/^Error creating: /, ""), evidence })];
  }
  // What is ending makes room for what is to come, and a paused rollout wants nothing.
  const isUnderWay = pods.some(isDeleting) || field(object, "spec", "paused") === true;
  return isUnderWay ? [] : [notMade(deployment, what)];
}

function replicaSets({ cluster, ns, name }: Workload): readonly object[] {
  return cluster.objects.replicaSets.filter(
    (set) =>
      textAt(set, "metadata", "namespace") === ns &&
      objectsAt(set, "metadata", "ownerReferences").some(
        (owner) => textAt(owner, "kind") === "Deployment" && textAt(owner, "name") === name,
      ),
  );
}

/** Where a pod waits for what another pod of the same Deployment has, no pod is at fault: the Deployment is. */
function selfHeld(
  deployment: Workload,
  pods: readonly Pod[],
  { view, finding }: Diagnosed,
): Finding | undefined {
  const holder = pods.find((pod) => idOf(pod) === finding.names["other"]);
  if (!HELD_BY_POD.has(finding.reason) || holder === undefined || view.pod === undefined) return undefined;
  const rolling = textAt(deployment.object, "spec", "strategy", "type") !== "Recreate";
  const isUpdate = rolling && replicaSetOf(view.pod) !== replicaSetOf(holder);
  const modes = textsAt(view.claim, "spec", "accessModes");
  const names = {
    ...finding.names,
    ...namesOf(deployment),
    scope: modes.includes("ReadWriteOncePod") ? "one pod" : "one node",
    place: placeOf(view.pod),
    otherPlace: placeOf(holder),
  };
  const strategy = seen(
    `Deployment ${deployment.ns}/${deployment.name}`,
    "spec.strategy.type",
    textAt(deployment.object, "spec", "strategy", "type") || "RollingUpdate",
  );
  const access = seen(`PersistentVolumeClaim ${view.claimId}`, "spec.accessModes", modes.join(", "));
  return told(isUpdate ? "rollout-deadlock" : "replicas-share-claim", names, {
    evidence: [strategy, access, ...finding.evidence.filter(({ field: of }) => of !== access.field)],
    sinceMs: createdAt(view.pod),
  });
}

function placeOf(pod: Pod): string {
  const node = textAt(pod, "spec", "nodeName");
  return node === "" ? "no node yet" : `on node ${node}`;
}

/** Well as long as all replicas are on one node, which nothing promises. */
function sharedClaims({ cluster, replicas }: Workload, pods: readonly Pod[]): readonly string[] {
  if (replicas < 2) return [];
  const views = pods
    .flatMap((pod) => volumeViewsOf(cluster, pod))
    .filter((view) => view.claimId !== "" && view.exclusive);
  return [...new Set(views.map(({ claimId }) => claimId))].map(
    (claim) =>
      `${replicas} replicas share claim ${claim}, which only one node may have: a replica on another node would wait for ever`,
  );
}

function linesOf(pods: readonly Pod[]): readonly string[] {
  const lines = pods.map(podLine);
  return lines.length > LINES_MAX
    ? [...lines.slice(0, LINES_MAX), `and ${lines.length - LINES_MAX} more pods`]
    : lines;
}

function healthy({ ns, name, replicas, object }: Workload, pods: readonly Pod[]): string {
  const running = pods.filter(hasStarted).length;
  if (replicas === 0)
    return `Deployment ${ns}/${name} is healthy: it is scaled to 0, so no pod of it needs a volume`;
  const paused = field(object, "spec", "paused") === true ? "; its rollout is paused" : "";
  const unavailable = numberAt(object, "status", "unavailableReplicas") ?? 0;
  return `Deployment ${ns}/${name} is healthy: ${running} of ${counted(replicas, "replica")} started, with all volumes${unavailable > 0 ? `, ${unavailable} not available yet` : ""}; nothing blocks it${paused}`;
}
