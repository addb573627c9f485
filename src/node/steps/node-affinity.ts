import type { NodeSelectorRequirement, NodeSelectorTerm } from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";

/** Whether a node fits a term of a node selector. A term without requirements fits none. */
export function createRequirementMatcher(node: Node | undefined): (term: NodeSelectorTerm) => boolean {
  const labels = node?.metadata.labels ?? {};
  const fields = { "metadata.name": node?.metadata.name ?? "" };
  return ({ matchExpressions = [], matchFields = [] }) =>
    matchExpressions.length + matchFields.length > 0 &&
    matchExpressions.every((requirement) => matches(requirement, labels)) &&
    matchFields.every((requirement) => matches(requirement, fields));
}

function matches(
  { key, operator, values = [] }: NodeSelectorRequirement,
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
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
      return compare(value, values[0], (a, b) => a > b);
    case "Lt":
      return compare(value, values[0], (a, b) => a < b);
    default:
      return false;
  }
}

function compare(
  value: string | undefined,
  bound: string | undefined,
  holds: (a: bigint, b: bigint) => boolean,
): boolean {
  const whole = /^-?\d+$/;
  if (value === undefined || bound === undefined || !whole.test(value) || !whole.test(bound)) return false;
  return holds(BigInt(value), BigInt(bound));
}
