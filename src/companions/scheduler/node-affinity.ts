import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { NodeView, Refusal } from "./view.ts";

/** Where a pod wants to be, or a volume is: node selectors and node affinity. */

export function refuseByAffinity(pod: Pod, { node }: NodeView): Refusal | undefined {
  return isWanted(pod, node) ? undefined : MISMATCH;
}

const MISMATCH: Refusal = { text: "node(s) didn't match Pod's node affinity/selector", until: ["node"] };

/** By `nodeSelector` and what its node affinity requires. */
export function isWanted({ spec }: Pod, node: Node): boolean {
  const labels = node.metadata.labels ?? {};
  const selected = Object.entries(spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value);
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return selected && (!required || matchesNodeSelector(required, node));
}

/** The sum of the weights of all preferences that the node meets. */
export function preferenceOf({ spec }: Pod, node: Node): number {
  const preferred = spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return preferred.reduce(
    (sum, { weight, preference }) => (matchesTerm(preference, node) ? sum + weight : sum),
    0,
  );
}

/** One of its terms has to hold; without any, nothing does. */
export function matchesNodeSelector({ nodeSelectorTerms }: NodeSelector, node: Node): boolean {
  return nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

/** All of its requirements have to hold; a term without any selects nothing. */
function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Node): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  const labels = node.metadata.labels ?? {};
  const fields = { "metadata.name": node.metadata.name ?? "" };
  return (
    matchExpressions.every((requirement) => matches(requirement, labels)) &&
    matchFields.every((requirement) => matches(requirement, fields))
  );
}

function matches(
  { key, operator, values = [] }: NodeSelectorRequirement,
  found: Readonly<Record<string, string>>,
): boolean {
  // `constructor` is a valid label key: only own members are labels.
  const value = Object.hasOwn(found, key) ? found[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
    case "Lt":
      return value !== undefined && compares(value, operator, values[0]);
    default:
      // What a later version may mean by it is not known, and a node that is not wanted is worse than waiting.
      return false;
  }
}

const INTEGER = /^[+-]?\d{1,18}$/;

function compares(value: string, operator: "Gt" | "Lt", bound: string | undefined): boolean {
  if (!INTEGER.test(value) || bound === undefined || !INTEGER.test(bound)) return false;
  return operator === "Gt" ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
}
