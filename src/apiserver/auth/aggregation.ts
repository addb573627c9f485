import { isJsonObject, jsonEqual } from "../../kube/patch/json.ts";
import { fromLabelSelectorObject, matchesLabels } from "../../kube/selectors.ts";
import { fieldAt, type ApiObject } from "../objects.ts";
import { rulesOf, type PolicyRule } from "./rules.ts";
import { listAt } from "./stored.ts";

/**
 * The rules a ClusterRole stands for: its own, or, where it has an `aggregationRule`, those of all roles
 * with the labels it names, in turn collected by them or not. `admin` is so made of `edit`, which is made
 * of `view`. Each role counts once, so a circle of roles ends. They come in the order in which upstream's controller
 * writes them: by selector, then by name.
 */
export function effectiveRules(
  role: ApiObject,
  clusterRoles: () => Iterable<ApiObject>,
): readonly PolicyRule[] {
  const rules: PolicyRule[] = [];
  const seen = new Set<string>();
  collect(role);
  return rules;

  function collect(from: ApiObject): void {
    const name = from.metadata.name ?? "";
    if (seen.has(name)) return;
    seen.add(name);
    if (fieldAt(from, "aggregationRule") === undefined) {
      rulesOf(from).forEach(add);
      return;
    }
    for (const selector of listAt(from, "aggregationRule", "clusterRoleSelectors")) {
      [...clusterRoles()]
        .filter((other) => isSelected(selector, other))
        .toSorted(byName)
        .forEach(collect);
    }
  }

  function add(rule: PolicyRule): void {
    if (!rules.some((known) => jsonEqual(known, rule))) rules.push(rule);
  }
}

function byName(
  { metadata: { name: a = "" } }: ApiObject,
  { metadata: { name: b = "" } }: ApiObject,
): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A selector that cannot be read selects nothing; one that is empty selects everything, as it should. */
function isSelected(selector: unknown, { metadata }: ApiObject): boolean {
  const labels = fieldAt(selector, "matchLabels") ?? {};
  if (!isJsonObject(selector) || !isJsonObject(labels)) return false;
  try {
    return matchesLabels(fromLabelSelectorObject(selector), metadata.labels);
  } catch {
    return false;
  }
}
