import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from "kubernetes-types/core/v1.js";
import type { Node } from "./api/node.ts";

/** Node selectors, as pods and PersistentVolumes have them. Pure. */

/** One of its terms has to hold; without any, nothing does. */
export function matchesNodeSelector({ nodeSelectorTerms }: NodeSelector, node: Node | undefined): boolean {
  return nodeSelectorTerms.some((term) => matchesNodeTerm(term, node));
}

/** All of its requirements have to hold; a term without any selects nothing. */
export function matchesNodeTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  node: Node | undefined,
): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  const labels = node?.metadata.labels ?? {};
  const fields = { "metadata.name": node?.metadata.name ?? "" };
  return (
    matchExpressions.every((requirement) =>
      matchesRequirement(requirement, ownOf(labels, requirement.key)),
    ) && matchFields.every((requirement) => matchesRequirement(requirement, ownOf(fields, requirement.key)))
  );
}

/** `constructor` is a valid label key: only own members are labels. */
function ownOf(found: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(found, key) ? found[key] : undefined;
}

/** What a later version may mean by an operator is not known: such a requirement holds for nothing. */
export function matchesRequirement(
  { operator, values = [] }: Pick<NodeSelectorRequirement, "operator" | "values">,
  value: string | undefined,
): boolean {
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
      return false;
  }
}

const INTEGER = /^[+-]?\d{1,18}$/;

function compares(value: string, operator: "Gt" | "Lt", bound: string | undefined): boolean {
  if (!INTEGER.test(value) || bound === undefined || !INTEGER.test(bound)) return false;
  return operator === "Gt" ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
}
