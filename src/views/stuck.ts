import type { Pod } from "../kube/api/pod.ts";
import type { KubeObject } from "../kube/object.ts";
import { isPodTerminated } from "../volumes/resolve.ts";
import type { Cluster } from "./cluster.ts";
import { hasStarted } from "./conditions.ts";
import { diagnosePod, firstFinding } from "./diagnose.ts";
import { firstDeploymentFinding } from "./explain-deployment.ts";
import { firstStatefulSetFinding } from "./explain-stateful-set.ts";
import { idOf, nameOf, textAt } from "./fields.ts";
import { leftover } from "./leftovers.ts";
import { OBJECT_KINDS, type ObjectKind } from "./objects.ts";
import { says, wordsOf, type Finding, type Reason } from "./reasons/reasons.ts";
import { inContext, type Link } from "./reasons/words.ts";
import { snapshotFinding, snapshotViewOf } from "./snapshot-findings.ts";
import type { SubjectKind } from "./subjects.ts";
import { claimView, persistentVolumeView } from "./volume-view.ts";

/** One object that is stuck, as `mooring why` takes it. */
export interface StuckObject {
  readonly kind: SubjectKind;
  readonly name: string;
  readonly namespace: string;
}

/** One cause, and everything that is stuck because of it. */
export interface StuckCause {
  readonly reason: Reason;
  readonly link: Link;
  readonly count: number;
  /** The sentence about the first of the objects. */
  readonly cause: string;
  /** Most namespaces and names first in order of the cluster; all of them. */
  readonly objects: readonly StuckObject[];
  readonly sinceMs: number | undefined;
  /** To look further. */
  readonly command: string;
}

export interface Stuck {
  readonly summary: string;
  /** Most affected first. */
  readonly causes: readonly StuckCause[];
  /** How many objects of each kind were looked at. */
  readonly checked: Readonly<Partial<Record<ObjectKind, number>>>;
  readonly missingRights: readonly string[];
  readonly notes: readonly string[];
}

/**
 * Everything in the cluster that is stuck, by cause. Each object is counted once, at its root cause: a claim that a waiting
 * pod uses, or an attachment that it waits for, is not counted again. One look at each object: 10,000 pods take a second.
 */
export function stuckIn(cluster: Cluster): Stuck {
  const groups = new Map<string, { readonly finding: Finding; readonly objects: StuckObject[] }>();
  for (const { object, finding } of [...stuckPods(cluster), ...stuckOthers(cluster)]) {
    const key = causeKey(finding);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { finding, objects: [object] });
    else group.objects.push(object);
  }
  const causes = [...groups.values()]
    .map(({ finding, objects }) => causeOf(cluster, finding, objects))
    .sort((a, b) => b.count - a.count || a.reason.localeCompare(b.reason));
  return {
    summary: summaryOf(cluster, causes),
    causes,
    checked: checkedOf(cluster),
    missingRights: cluster.objects.unread.map(({ right, why }) => `${right}: ${why}`),
    notes: cluster.objects.notes,
  };
}

interface Judged {
  readonly object: StuckObject;
  readonly finding: Finding;
}

/** Of a pod that waits its root cause; of one that runs, what its volumes are threatened by. */
function stuckPods(cluster: Cluster): readonly Judged[] {
  return cluster.objects.pods.flatMap((pod) => {
    if (isPodTerminated(pod)) return [];
    const [first] = diagnosePod(cluster, pod);
    return first === undefined ? [] : [{ object: objectOf("pod", pod), finding: first.finding }];
  });
}

/** What no pod tells of: claims, volumes and attachments that no pod uses, workloads without pods, snapshots. */
function stuckOthers(cluster: Cluster): readonly Judged[] {
  const { claims, volumes, attachments, statefulSets, deployments, snapshots } = cluster.objects;
  const judged = <T extends KubeObject>(
    kind: SubjectKind,
    items: readonly T[],
    findingOf: (item: T) => Finding | undefined,
  ): readonly Judged[] =>
    items.flatMap((item) => {
      const finding = findingOf(item);
      return finding === undefined || isPatience(finding) ? [] : [{ object: objectOf(kind, item), finding }];
    });
  return [
    ...judged("statefulset", statefulSets, (item) => firstStatefulSetFinding(cluster, item)),
    ...judged("deployment", deployments, (item) => firstDeploymentFinding(cluster, item)),
    ...judged("pvc", claims, (item) =>
      cluster.podsOfClaim(idOf(item)).length > 0
        ? undefined
        : firstFinding(claimView(cluster, item, idOf(item))),
    ),
    ...judged("pv", volumes, (item) =>
      textAt(item, "spec", "claimRef", "name") === "" || isReleased(item)
        ? firstFinding(persistentVolumeView(cluster, item))
        : undefined,
    ),
    ...judged("va", attachments, (item) => leftover(cluster, item)),
    ...judged("volumesnapshot", snapshots, (item) => snapshotFinding(snapshotViewOf(cluster, item))),
  ];
}

function isReleased(pv: KubeObject): boolean {
  const phase = textAt(pv, "status", "phase");
  return phase === "Released" || phase === "Failed";
}

/** A claim without a pod and a volume that was kept on purpose are as they should be. */
function isPatience({ reason, names }: Finding): boolean {
  return reason === "claim-waits-for-pod" || (reason === "volume-released" && names["policy"] === "Retain");
}

function objectOf(kind: SubjectKind, object: KubeObject): StuckObject {
  return { kind, name: nameOf(object), namespace: textAt(object, "metadata", "namespace") };
}

/**
 * Which names of a finding are the cause rather than the victim. Two claims that miss one class, or ten pods on one dead
 * node, are one cause; two pods whose claims do not exist are two victims of one kind of mistake, and told together.
 */
const CAUSE_NAMES: Readonly<Record<Link, readonly string[]>> = {
  workload: ["kind", "ns", "quota"],
  pod: ["scheduler"],
  claim: ["class", "provisioner"],
  volume: [],
  attachment: ["holder", "driver"],
  node: ["node"],
  driver: ["driver"],
  mount: ["driver"],
  snapshot: [],
  class: ["class"],
  content: ["driver"],
};

function causeKey(finding: Finding): string {
  const names = CAUSE_NAMES[wordsOf(finding).link].map((name) => finding.names[name] ?? "");
  return [finding.reason, ...names, generalized(finding.names["message"] ?? "")].join("\n");
}

/** Messages that differ in names and numbers only are one message. */
function generalized(message: string): string {
  return message.replaceAll(/"[^"]*"|\b[\w.-]*\d[\w.-]*\b/g, "#");
}

function causeOf(cluster: Cluster, finding: Finding, objects: readonly StuckObject[]): StuckCause {
  const [example] = objects;
  const { kind = "pod", name = "", namespace = "" } = example ?? {};
  const where = namespace === "" ? "" : ` --namespace ${namespace}`;
  return {
    reason: finding.reason,
    link: wordsOf(finding).link,
    count: objects.length,
    cause: says(finding),
    objects,
    sinceMs: finding.sinceMs,
    command: inContext(`mooring why ${kind}/${name}${where}`, cluster.context),
  };
}

const KIND_WORDS: Readonly<Record<ObjectKind, readonly [one: string, many: string]>> = {
  pods: ["pod", "pods"],
  claims: ["claim", "claims"],
  volumes: ["volume", "volumes"],
  attachments: ["attachment", "attachments"],
  nodes: ["node", "nodes"],
  csiNodes: ["CSINode", "CSINodes"],
  csiDrivers: ["CSIDriver", "CSIDrivers"],
  storageClasses: ["class", "classes"],
  events: ["event", "events"],
  statefulSets: ["StatefulSet", "StatefulSets"],
  deployments: ["Deployment", "Deployments"],
  replicaSets: ["ReplicaSet", "ReplicaSets"],
  resourceQuotas: ["quota", "quotas"],
  snapshots: ["snapshot", "snapshots"],
  snapshotClasses: ["snapshot class", "snapshot classes"],
  snapshotContents: ["snapshot content", "snapshot contents"],
};

/** What an answer without causes is about; the rest is read to explain these. */
const TOLD: readonly ObjectKind[] = [
  "pods",
  "claims",
  "volumes",
  "attachments",
  "statefulSets",
  "deployments",
  "snapshots",
];

function checkedOf({ objects }: Cluster): Stuck["checked"] {
  const known = OBJECT_KINDS.filter(
    (kind) => !objects.notAsked.includes(kind) && !objects.notServed.includes(kind),
  );
  return Object.fromEntries(known.map((kind) => [kind, objects[kind].length]));
}

function summaryOf(cluster: Cluster, causes: readonly StuckCause[]): string {
  const checked = checkedOf(cluster);
  const looked = TOLD.filter((kind) => checked[kind] !== undefined)
    .map((kind) => `${checked[kind]} ${KIND_WORDS[kind][checked[kind] === 1 ? 0 : 1]}`)
    .join(", ");
  if (causes.length === 0) return `Nothing is stuck; looked at: ${looked}.`;
  const count = causes.reduce((sum, cause) => sum + cause.count, 0);
  const waiting = cluster.objects.pods.filter((pod: Pod) => !isPodTerminated(pod) && !hasStarted(pod)).length;
  const objects = count === 1 ? "1 object is" : `${count} objects are`;
  const of = causes.length === 1 ? "1 cause" : `${causes.length} causes`;
  return `${objects} stuck, for ${of}; ${waiting} of ${checked.pods ?? 0} pods wait. Looked at: ${looked}.`;
}
