import type { Pod } from "../kube/api/pod.ts";
import { chainOf, type ChainLink } from "./chain.ts";
import { seen } from "./checks/check.ts";
import type { Cluster } from "./cluster.ts";
import { hasStarted } from "./conditions.ts";
import { diagnosePod } from "./diagnose.ts";
import { explanation, type Explanation } from "./explanation.ts";
import {
  createdAt,
  idOf,
  isDeleting,
  nameOf,
  numberAt,
  objectsAt,
  textAt,
  textsAt,
  timeAt,
} from "./fields.ts";
import type { Finding } from "./reasons/reasons.ts";
import { counted, someOf, told } from "./told.ts";
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

/** One place of a StatefulSet, and the pod that has it. */
interface Ordinal {
  readonly index: number;
  readonly podName: string;
  readonly pod: Pod | undefined;
}

/** A line each; a set of a thousand is not told pod by pod. */
const LINES_MAX = 10;

/** A StatefulSet: at which ordinal it is stuck, and why. */
export function explainStatefulSet(cluster: Cluster, id: string): Explanation | undefined {
  const object = cluster.find("statefulSets", id);
  if (object === undefined) return undefined;
  const set = workloadOf(cluster, "StatefulSet", object);
  const ordinals = ordinalsOf(set);
  const stuck = stuckOrdinals(set, ordinals);
  const [first] = stuck;
  const well = ordinals.flatMap(({ pod }) =>
    isReady(pod) && pod !== undefined ? diagnosePod(cluster, pod) : [],
  );
  return explanation(cluster, {
    subject: `StatefulSet ${id}`,
    lead: (blocks) =>
      first === undefined
        ? `StatefulSet ${id} has all its pods, but ${blocks}`
        : leadOf(set, ` at ordinal ${first.index}`, blocks),
    healthy: healthy(set, ordinals),
    findings: [
      ...stuck.flatMap((ordinal) => findingsOf(set, ordinal)),
      ...well.map(({ finding }) => finding),
    ],
    chain: [workloadLink(set), ...chainOfOrdinal(set, first ?? ordinals[0])],
    others: linesOf(set, ordinals),
    facts: claimsKept(set, ordinals),
    contradictions: contradictionsIn(
      set,
      ordinals.flatMap(({ pod }) => pod ?? []),
    ),
  });
}

/** The cause of the first ordinal that is stuck, for those who look at many. */
export function firstStatefulSetFinding(cluster: Cluster, object: Workload["object"]): Finding | undefined {
  const set = workloadOf(cluster, "StatefulSet", object);
  const [missing] = stuckOrdinals(set, ordinalsOf(set));
  return missing?.pod === undefined && missing !== undefined ? findingsOf(set, missing)[0] : undefined;
}

function ordinalsOf({ cluster, object, ns, name, replicas }: Workload): readonly Ordinal[] {
  const start = numberAt(object, "spec", "ordinals", "start") ?? 0;
  // A number that no cluster has room for is cut, so that a broken object costs nothing.
  return Array.from({ length: Math.max(0, Math.min(replicas, 10_000)) }, (_, at) => {
    const podName = `${name}-${start + at}`;
    return { index: start + at, podName, pod: cluster.find("pods", `${ns}/${podName}`) };
  });
}

/** Without the right to see pods nothing is stuck that anybody could name. */
function stuckOrdinals({ cluster, object, ns }: Workload, ordinals: readonly Ordinal[]): readonly Ordinal[] {
  if (!cluster.knows("pods", ns)) return [];
  const stuck = ordinals.filter(({ pod }) => !isReady(pod));
  // In order, one waits for the one before it, and is no cause of its own.
  return textAt(object, "spec", "podManagementPolicy") === "Parallel" ? stuck : stuck.slice(0, 1);
}

function findingsOf(set: Workload, ordinal: Ordinal): readonly Finding[] {
  const { pod, podName } = ordinal;
  if (pod === undefined)
    return [
      claimDeleting(set, ordinal) ??
        refused(set, podName) ??
        notMade(set, `pod ${podName}`, {
          claimMissing: claimNames(set, podName).some(
            (name) => set.cluster.find("claims", `${set.ns}/${name}`) === undefined,
          ),
        }),
    ];
  const parallel = textAt(set.object, "spec", "podManagementPolicy") === "Parallel";
  const then = parallel
    ? "its StatefulSet makes the other pods all the same"
    : "its StatefulSet makes no pod after it until it is ready (podManagementPolicy OrderedReady)";
  return unreadyFindings(set, pod, then);
}

/** Of the pod, or of the claims that are made before it. */
function refused(set: Workload, podName: string): Finding | undefined {
  const id = `${set.ns}/${set.name}`;
  const event = set.cluster
    .eventsOf("StatefulSet", id)
    .find((item) => textAt(item, "reason") === "FailedCreate" && mentions(textAt(item, "message"), podName));
  if (event === undefined) return undefined;
  const message = textAt(event, "message");
  const [, claim] = /create Claim (\S+)/.exec(message) ?? [];
  return creationFailure(set, {
    what: claim === undefined ? `pod ${podName}` : `claim ${claim} for pod ${podName}`,
    message: message.replace(/^.*? failed error: /, ""),
    evidence: seen(`Event of StatefulSet ${id}`, "FailedCreate", message),
  });
}

/** `db-1`, and not `db-10`. */
function mentions(message: string, podName: string): boolean {
  return message.split(/[\s",:]+/).includes(podName);
}

function claimNames({ object }: Workload, podName: string): readonly string[] {
  return objectsAt(object, "spec", "volumeClaimTemplates").map(
    (template) => `${nameOf(template)}-${podName}`,
  );
}

function claimDeleting(set: Workload, { podName }: Ordinal): Finding | undefined {
  for (const claimName of claimNames(set, podName)) {
    const claim = set.cluster.find("claims", `${set.ns}/${claimName}`);
    if (claim === undefined || !isDeleting(claim)) continue;
    const users = set.cluster.podsOfClaim(idOf(claim)).map(idOf);
    const finalizers = textsAt(claim, "metadata", "finalizers").join(", ") || "none";
    return told(
      "workload-claim-deleting",
      {
        ...namesOf(set),
        pod: `${set.ns}/${podName}`,
        claim: idOf(claim),
        claimName,
        finalizers,
        users: someOf(users) || "none does any more",
      },
      {
        evidence: [seen(`PersistentVolumeClaim ${idOf(claim)}`, "metadata.finalizers", finalizers)],
        sinceMs: timeAt(claim, "metadata", "deletionTimestamp"),
      },
    );
  }
  return undefined;
}

function chainOfOrdinal(set: Workload, ordinal: Ordinal | undefined): readonly ChainLink[] {
  if (ordinal === undefined) return [];
  const { pod, podName } = ordinal;
  if (pod !== undefined) {
    const [diagnosed] = diagnosePod(set.cluster, pod);
    const view = diagnosed?.view ?? volumeViewsOf(set.cluster, pod).find(({ claimId }) => claimId !== "");
    return view === undefined ? [] : chainOf(view);
  }
  const claims = claimNames(set, podName).map((name): ChainLink => {
    const claim = set.cluster.find("claims", `${set.ns}/${name}`);
    const phase = textAt(claim, "status", "phase") || "missing";
    const state = isDeleting(claim) ? `${phase}, deleting` : phase;
    return { link: "claim", object: `${set.ns}/${name}`, state, sinceMs: createdAt(claim), evidence: [] };
  });
  return [
    { link: "pod", object: `${set.ns}/${podName}`, state: "not made", sinceMs: undefined, evidence: [] },
    ...claims,
  ];
}

function linesOf(set: Workload, ordinals: readonly Ordinal[]): readonly string[] {
  const lines = ordinals.map(({ pod, podName }) =>
    pod === undefined ? `pod ${podName}: not made` : podLine(pod),
  );
  const more = lines.length > LINES_MAX ? [`and ${lines.length - LINES_MAX} more pods`] : [];
  const extra = set.cluster.objects.pods.filter((pod) => isBeyond(set, ordinals, pod));
  return [
    ...lines.slice(0, LINES_MAX),
    ...more,
    ...extra.map((pod) => `${podLine(pod)}, beyond the ${set.replicas} wanted`),
  ];
}

function isBeyond({ ns, name }: Workload, ordinals: readonly Ordinal[], pod: Pod): boolean {
  return (
    textAt(pod, "metadata", "namespace") === ns &&
    objectsAt(pod, "metadata", "ownerReferences").some(
      (owner) => textAt(owner, "kind") === "StatefulSet" && textAt(owner, "name") === name,
    ) &&
    !ordinals.some(({ podName }) => podName === nameOf(pod))
  );
}

/** Claims of ordinals that are no more wanted stay, unless the set says otherwise; that surprises people. */
function claimsKept(set: Workload, ordinals: readonly Ordinal[]): readonly string[] {
  const wanted = new Set(ordinals.flatMap(({ podName }) => claimNames(set, podName)));
  const prefixes = claimNames(set, set.name).map((prefix) => `${prefix}-`);
  const kept = set.cluster.objects.claims.filter((claim) => {
    const name = nameOf(claim);
    const isOfSet = prefixes.some(
      (prefix) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)),
    );
    return textAt(claim, "metadata", "namespace") === set.ns && isOfSet && !wanted.has(name);
  });
  if (kept.length === 0) return [];
  const policy = textAt(set.object, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") || "Retain";
  return [
    `claim ${someOf(kept.map(nameOf))} is of an ordinal that is not wanted now (whenScaled: ${policy})`,
  ];
}

function healthy({ ns, name, replicas }: Workload, ordinals: readonly Ordinal[]): string {
  const started = ordinals.filter(({ pod }) => hasStarted(pod)).length;
  if (replicas === 0)
    return `StatefulSet ${ns}/${name} is healthy: it is scaled to 0, so no pod of it needs a volume`;
  return `StatefulSet ${ns}/${name} is healthy: ${started} of ${counted(replicas, "pod")} started, with all volumes; nothing blocks it`;
}
