import type { Node } from "../kube/api/node.ts";
import { matchesRequirement } from "../kube/node-selector.ts";
import { nameOf, objectsAt, textAt, textsAt } from "./fields.ts";

/** Whether the labels of a node satisfy one of the terms. An operator nobody knows is never satisfied: unsure means no. */
export function matchesNodeAffinity(node: Node, terms: readonly object[]): boolean {
  return terms.some((term) => {
    const [labels, fields] = [objectsAt(term, "matchExpressions"), objectsAt(term, "matchFields")];
    if (labels.length + fields.length === 0) return false;
    return (
      labels.every((rule) => matches(textsOrNone(node, textAt(rule, "key")), rule)) &&
      fields.every((rule) => textAt(rule, "key") === "metadata.name" && matches(nameOf(node), rule))
    );
  });
}

function textsOrNone(node: Node, key: string): string | undefined {
  const labels: Readonly<Record<string, unknown>> = node.metadata.labels ?? {};
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  return typeof value === "string" ? value : undefined;
}

function matches(value: string | undefined, rule: object): boolean {
  return matchesRequirement(
    { operator: textAt(rule, "operator"), values: [...textsAt(rule, "values")] },
    value,
  );
}

/** `zone is a or b, and disk exists; or …`. */
export function termsInWords(terms: readonly object[]): string {
  return terms
    .map((term) =>
      [...objectsAt(term, "matchExpressions"), ...objectsAt(term, "matchFields")]
        .map(ruleInWords)
        .join(" and "),
    )
    .join("; or ");
}

function ruleInWords(rule: object): string {
  const [key, values] = [textAt(rule, "key"), textsAt(rule, "values").join(" or ")];
  switch (textAt(rule, "operator")) {
    case "In":
      return `${key} is ${values}`;
    case "NotIn":
      return `${key} is not ${values}`;
    case "Exists":
      return `${key} is set`;
    case "DoesNotExist":
      return `${key} is not set`;
    default:
      return `${key} ${textAt(rule, "operator")} ${values}`;
  }
}
