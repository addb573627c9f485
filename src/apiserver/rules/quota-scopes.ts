import type { PodSpec, ResourceQuota } from "kubernetes-types/core/v1.js";
import type { ApiObject } from "../objects.ts";
import type { Loose, LooseObject } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";
import { qosClassOf } from "./qos.ts";

/** Whether a quota is about this object. Scopes pick among pods; a quota that has one is about nothing else. */
export function isInScope(quota: LooseObject<ResourceQuota>, resource: string, object: ApiObject): boolean {
  const { scopes = [], scopeSelector = {} } = quota.spec ?? {};
  const terms = [
    ...scopes.map((scopeName): Term => ({ scopeName, operator: "Exists" })),
    ...((scopeSelector.matchExpressions ?? []) as readonly Term[]),
  ];
  if (terms.length === 0) return true;
  if (resource !== "pods") return false;
  const { spec = {} } = object as PodObject;
  return terms.every((term) => matchesTerm(term, spec));
}

interface Term {
  readonly scopeName?: string;
  readonly operator?: string | undefined;
  readonly values?: readonly string[];
}

function matchesTerm({ scopeName = "", operator, values = [] }: Term, spec: Loose<PodSpec>): boolean {
  switch (scopeName) {
    case "Terminating":
      return (spec.activeDeadlineSeconds ?? -1) >= 0;
    case "NotTerminating":
      return (spec.activeDeadlineSeconds ?? -1) < 0;
    case "BestEffort":
      return qosClassOf(spec) === "BestEffort";
    case "NotBestEffort":
      return qosClassOf(spec) !== "BestEffort";
    case "PriorityClass":
      return matchesName({ operator, values }, spec.priorityClassName ?? "");
    case "CrossNamespacePodAffinity":
      return reachesOut(spec);
    default:
      return false;
  }
}

function matchesName({ operator, values = [] }: Omit<Term, "scopeName">, name: string): boolean {
  if (operator === "Exists") return name !== "";
  if (operator === "DoesNotExist") return name === "";
  return operator === "NotIn" ? !values.includes(name) : values.includes(name);
}

/** Its affinity names pods of other namespaces. */
function reachesOut({ affinity = {} }: Loose<PodSpec>): boolean {
  const sides = [affinity.podAffinity, affinity.podAntiAffinity];
  return sides.some((side) =>
    [
      ...(side?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
      ...(side?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(
        ({ podAffinityTerm }) => podAffinityTerm,
      ),
    ].some((term) => (term?.namespaces ?? []).length > 0 || term?.namespaceSelector !== undefined),
  );
}
