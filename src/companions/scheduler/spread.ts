import type { TopologySpreadConstraint } from "kubernetes-types/core/v1.js";
import type { Pod } from "../../kube/api/pod.ts";
import { isWanted } from "./node-affinity.ts";
import { selectsLabels } from "./pod-affinity.ts";
import { refuseByTaint } from "./taints.ts";
import type { ClusterView, NodeView, Refusal } from "./view.ts";

/** Pods of a kind spread evenly over zones or nodes: `topologySpreadConstraints` that must hold. */
export interface Spread {
  refuse(nodeView: NodeView): Refusal | undefined;
}

export function spreadOf(pod: Pod, view: ClusterView): Spread | undefined {
  const constraints = (pod.spec?.topologySpreadConstraints ?? []).filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === "DoNotSchedule",
  );
  if (constraints.length === 0) return undefined;
  const keys = constraints.map(({ topologyKey }) => topologyKey);
  const counted = constraints.map((constraint) => countDomains(pod, constraint, keys, view));
  return {
    refuse({ node }) {
      const labels = node.metadata.labels ?? {};
      for (const { constraint, domains, own, fewest } of counted) {
        const domain = labels[constraint.topologyKey];
        if (domain === undefined) return NO_LABEL;
        if ((domains.get(domain) ?? 0) + own - fewest > constraint.maxSkew) return UNEVEN;
      }
      return undefined;
    },
  };
}

const TEXT = "node(s) didn't match pod topology spread constraints";
const UNEVEN: Refusal = { text: TEXT, until: ["node", "pod", "room"] };
const NO_LABEL: Refusal = { text: `${TEXT} (missing required label)`, until: ["node"] };

interface Counted {
  readonly constraint: TopologySpreadConstraint;
  readonly domains: ReadonlyMap<string, number>;
  /** 1 where the pod is one of those it counts. */
  readonly own: number;
  readonly fewest: number;
}

function countDomains(
  pod: Pod,
  constraint: TopologySpreadConstraint,
  keys: readonly string[],
  view: ClusterView,
): Counted {
  const domains = new Map<string, number>();
  for (const nodeView of view.nodes) {
    const labels = nodeView.node.metadata.labels ?? {};
    const domain = labels[constraint.topologyKey];
    const hasAll = keys.every((key) => labels[key] !== undefined);
    if (domain === undefined || !hasAll || !isEligible(pod, constraint, nodeView)) continue;
    const counted = nodeView.pods.filter((other) => isCounted(pod, constraint, other)).length;
    domains.set(domain, (domains.get(domain) ?? 0) + counted);
  }
  const isEnough = domains.size >= (constraint.minDomains ?? 1);
  const fewest = isEnough ? Math.min(...domains.values()) : 0;
  return { constraint, domains, own: selectsLabels(constraint.labelSelector, pod) ? 1 : 0, fewest };
}

/** Nodes the pod could never go to are not to be filled; tainted ones are, unless it says otherwise. */
function isEligible(pod: Pod, constraint: TopologySpreadConstraint, nodeView: NodeView): boolean {
  const { nodeAffinityPolicy = "Honor", nodeTaintsPolicy = "Ignore" } = constraint;
  if (nodeAffinityPolicy === "Honor" && !isWanted(pod, nodeView.node)) return false;
  return nodeTaintsPolicy !== "Honor" || refuseByTaint(pod, nodeView) === undefined;
}

/** A pod that is going makes room for this one. */
function isCounted(pod: Pod, constraint: TopologySpreadConstraint, other: Pod): boolean {
  if (other.metadata.deletionTimestamp || other.metadata.namespace !== pod.metadata.namespace) return false;
  const own = pod.metadata.labels ?? {};
  const isSame = (constraint.matchLabelKeys ?? []).every(
    (key) => own[key] === undefined || own[key] === other.metadata.labels?.[key],
  );
  return isSame && selectsLabels(constraint.labelSelector, other);
}
