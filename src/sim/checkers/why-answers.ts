import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { Explanation } from "../../views/explanation.ts";
import type { Reason } from "../../views/reasons/reasons.ts";
import { reportedWaits, waitLine } from "../reported-waits.ts";
import type { World } from "../world.ts";
import type { Fault } from "./fault-ledger.ts";
import { CAUSES } from "./why-causes.ts";

/** What objects and pages say for all to read about a pod that does not run. */
export interface PodFacts {
  /** Empty where it has none. */
  readonly node: string;
  /** It had started, so that nothing but its machine can have ended it. */
  readonly hasStarted: boolean;
  /** Whether its Node says so; of a pod without one too. */
  readonly isReady: boolean;
  /** A Node where it may be put is tainted, cordoned or not ready, which a scheduler takes for a taint. */
  readonly isSomeNodeClosed: boolean;
  /** There is no Node for its selector. */
  readonly isSelectedNodeMissing: boolean;
  /** Nodes where it may be put: the one that it selects, or all. */
  readonly candidates: readonly string[];
  /** Its claim names a source. */
  readonly isCopy: boolean;
  /** What the agent of its node says that the pod waits for. */
  readonly told: string | undefined;
}

export function factsOf(world: World, { metadata, spec, status }: Pod): PodFacts {
  const nodes = world.objects.all("nodes");
  const node = spec?.nodeName ?? "";
  const isReady = (one: Node) =>
    one.status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
  const isClosed = (one: Node) =>
    !isReady(one) || one.spec?.unschedulable === true || (one.spec?.taints?.length ?? 0) > 0;
  const selected = spec?.nodeSelector?.["kubernetes.io/hostname"];
  const isCandidate = ({ metadata: { name } }: Node) => selected === undefined || name === selected;
  const claims =
    spec?.volumes?.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []) ?? [];
  const isCopy = (claim: string) =>
    world.objects.get("persistentvolumeclaims", claim, metadata.namespace)?.spec?.dataSource !== undefined;
  const told = reportedWaits(world).find((wait) => wait.who === "node" && wait.podUid === metadata.uid);
  return {
    node,
    hasStarted: status?.phase === "Running",
    isReady: node === "" || nodes.some((one) => one.metadata.name === node && isReady(one)),
    isSomeNodeClosed: nodes.some((one) => isCandidate(one) && isClosed(one)),
    isSelectedNodeMissing: selected !== undefined && !nodes.some((one) => one.metadata.name === selected),
    candidates: selected === undefined ? [...world.nodes.keys()] : [selected],
    isCopy: claims.some(isCopy),
    told: told && waitLine(told),
  };
}

/** They say that nobody can tell. */
const UNSURE: readonly Reason[] = ["mount-pending", "contradiction"];
const OF_NODE: readonly Reason[] = ["node-not-ready", "node-missing"];

/** What is wrong with an answer about a pod that does not run, while these faults are in force; undefined where nothing is. */
export function problemOf(
  { summary, blocker }: Pick<Explanation, "summary" | "blocker">,
  facts: PodFacts,
  faults: readonly Fault[],
): string | undefined {
  if (blocker === undefined) return "is that nothing is wrong";
  const { reason, evidence } = blocker;
  const causes = CAUSES[reason];
  if (causes === undefined) return `is ${reason}, which nothing of this cluster brings about`;
  const concealed = concealedBy(reason, facts);
  if (concealed !== undefined) return `is ${reason}, though ${concealed}`;
  const text = [summary, ...evidence.map(({ object, value }) => `${object} ${value}`)].join(" ");
  // A scheduler says how many nodes lack the driver, and not which.
  const lacking = text.includes("did not have the CSI driver") ? facts.candidates : [];
  const nodes = new Set([facts.node, ...lacking, ...(text.match(/\bnode-\d+\b/g) ?? [])]);
  const [, waiting = ""] = /^([a-z-]+): /.exec(evidence[0]?.value ?? "") ?? [];
  const [, waits = ""] = /^mooring ([a-z]+)/.exec(evidence[0]?.object ?? "") ?? [];
  const named = causes({ ...facts, nodes: [...nodes], waiting, waits });
  if (named === "objects" || named.some((fault) => faults.includes(fault))) return undefined;
  return `is ${reason}, of which nothing is broken: that is ${faults.join(", ")}`;
}

/** What everybody can read, and the answer passes over. */
function concealedBy(reason: Reason, { node, hasStarted, isReady, told }: PodFacts): string | undefined {
  if (!OF_NODE.includes(reason) && !isReady && hasStarted)
    return `Node ${node}, on which the pod had started, is not ready`;
  if (!UNSURE.includes(reason)) return undefined;
  if (!isReady) return `Node ${node} is not ready`;
  return told;
}
