import type {
  Affinity,
  PodAffinity,
  PodAffinityTerm,
  TopologySpreadConstraint,
} from "kubernetes-types/core/v1.js";
import { causeIf, duplicate, invalidFor, invalidValue, oneOf, required, type Cause } from "./causes.ts";
import type { Loose } from "./loose.ts";
import { validateLabelSelector, validateNodeSelector, validateNodeSelectorTerm } from "./selectors.ts";
import { labelProblems, qualifiedNameProblems } from "./text-rules.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

export function validateAffinity(field: string, affinity: Loose<Affinity> = {}): Cause[] {
  const { nodeAffinity = {}, podAffinity, podAntiAffinity } = affinity;
  const nodes = nodeAffinity[REQUIRED];
  return [
    ...(nodes === undefined ? [] : validateNodeSelector(`${field}.nodeAffinity.${REQUIRED}`, nodes)),
    ...(nodeAffinity[PREFERRED] ?? []).flatMap(({ weight, preference = {} }, index) => {
      const path = `${field}.nodeAffinity.${PREFERRED}[${index}]`;
      return [...validateWeight(path, weight), ...validateNodeSelectorTerm(`${path}.preference`, preference)];
    }),
    ...validatePodAffinity(`${field}.podAffinity`, podAffinity),
    ...validatePodAffinity(`${field}.podAntiAffinity`, podAntiAffinity),
  ];
}

/** Wanting pods near and wanting them far are said in the same words. */
function validatePodAffinity(field: string, affinity: Loose<PodAffinity> = {}): Cause[] {
  return [
    ...(affinity[REQUIRED] ?? []).flatMap((term, index) =>
      validateTerm(`${field}.${REQUIRED}[${index}]`, term),
    ),
    ...(affinity[PREFERRED] ?? []).flatMap(({ weight, podAffinityTerm = {} }, index) => {
      const path = `${field}.${PREFERRED}[${index}]`;
      return [...validateWeight(path, weight), ...validateTerm(`${path}.podAffinityTerm`, podAffinityTerm)];
    }),
  ];
}

function validateWeight(field: string, weight = 0): Cause[] {
  const isRight = weight >= 1 && weight <= 100;
  return causeIf(!isRight, invalidValue(`${field}.weight`, weight, "must be in the range 1-100"));
}

function validateTerm(field: string, term: Loose<PodAffinityTerm>): Cause[] {
  const { labelSelector, namespaceSelector, namespaces = [], topologyKey = "" } = term;
  return [
    ...validateLabelSelector(`${field}.labelSelector`, labelSelector),
    ...validateLabelSelector(`${field}.namespaceSelector`, namespaceSelector),
    ...namespaces.flatMap((name) => invalidFor(`${field}.namespace`, name, labelProblems(name))),
    ...validateTopologyKey(`${field}.topologyKey`, topologyKey),
  ];
}

function validateTopologyKey(field: string, key: string): Cause[] {
  return [
    ...causeIf(key === "", required(field, "can not be empty")),
    ...invalidFor(field, key, qualifiedNameProblems(key)),
  ];
}

export function validateSpread(
  field: string,
  constraints: readonly Loose<TopologySpreadConstraint>[] = [],
): Cause[] {
  const pairs = constraints.map(({ topologyKey = "", whenUnsatisfiable = "" }) => [
    topologyKey,
    whenUnsatisfiable,
  ]);
  return constraints.flatMap((constraint, index) => {
    const path = `${field}[${index}]`;
    const { maxSkew = 0, topologyKey = "", whenUnsatisfiable = "", minDomains } = constraint;
    const isRepeated = pairs
      .slice(0, index)
      .some(([key, when]) => key === topologyKey && when === whenUnsatisfiable);
    return [
      ...causeIf(maxSkew <= 0, invalidValue(`${path}.maxSkew`, maxSkew, "must be greater than zero")),
      ...validateTopologyKey(`${path}.topologyKey`, topologyKey),
      ...oneOf(`${path}.whenUnsatisfiable`, whenUnsatisfiable, ["DoNotSchedule", "ScheduleAnyway"]),
      ...causeIf(
        isRepeated,
        duplicate(`${path}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`),
      ),
      ...causeIf(
        minDomains !== undefined && minDomains <= 0,
        invalidValue(`${path}.minDomains`, minDomains, "must be greater than zero"),
      ),
      ...validateLabelSelector(`${path}.labelSelector`, constraint.labelSelector),
    ];
  });
}
