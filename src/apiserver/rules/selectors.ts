import type {
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  TopologySelectorLabelRequirement,
  TopologySelectorTerm,
} from "kubernetes-types/core/v1.js";
import type { LabelSelector, LabelSelectorRequirement } from "kubernetes-types/meta/v1.js";
import { duplicate, forbiddenField, invalidFor, invalidValue, required, type Cause } from "./causes.ts";
import type { Loose } from "./loose.ts";
import { validateLabels } from "./metadata.ts";
import { labelValueProblems, qualifiedNameProblems, subdomainProblems } from "./text-rules.ts";

export function validateLabelSelector(field: string, selector: Loose<LabelSelector> | undefined): Cause[] {
  if (selector === undefined) return [];
  const { matchLabels, matchExpressions = [] } = selector;
  return [
    ...validateLabels(`${field}.matchLabels`, matchLabels),
    ...matchExpressions.flatMap((requirement, index) =>
      validateRequirement(`${field}.matchExpressions[${index}]`, requirement),
    ),
  ];
}

export function validateNodeSelector(
  field: string,
  { nodeSelectorTerms = [] }: Loose<NodeSelector>,
): Cause[] {
  const terms = `${field}.nodeSelectorTerms`;
  if (nodeSelectorTerms.length === 0) return [required(terms, "must have at least one node selector term")];
  return nodeSelectorTerms.flatMap((term, index) => validateNodeSelectorTerm(`${terms}[${index}]`, term));
}

export function validateNodeSelectorTerm(
  field: string,
  { matchExpressions = [], matchFields = [] }: Loose<NodeSelectorTerm>,
): Cause[] {
  return [
    ...matchExpressions.flatMap((requirement, at) =>
      validateNodeRequirement(`${field}.matchExpressions[${at}]`, requirement),
    ),
    ...matchFields.flatMap((requirement, at) =>
      validateFieldRequirement(`${field}.matchFields[${at}]`, requirement),
    ),
  ];
}

export function validateTopologies(
  field: string,
  terms: readonly Loose<TopologySelectorTerm>[] = [],
): Cause[] {
  return terms.flatMap(({ matchLabelExpressions = [] }, index) => {
    const path = `${field}[${index}].matchLabelExpressions`;
    const keys = matchLabelExpressions.map(({ key }) => key);
    return matchLabelExpressions.flatMap((requirement, at) => [
      ...validateTopology(`${path}[${at}]`, requirement),
      ...(keys.indexOf(requirement.key) < at ? [duplicate(`${path}[${at}].key`, requirement.key)] : []),
    ]);
  });
}

function validateTopology(
  field: string,
  { key = "", values = [] }: Loose<TopologySelectorLabelRequirement>,
): Cause[] {
  return [
    ...(values.length === 0 ? [required(`${field}.values`)] : []),
    ...values.flatMap((value, index) =>
      values.indexOf(value) < index ? [duplicate(`${field}.values[${index}]`, value)] : [],
    ),
    ...invalidFor(`${field}.key`, key, qualifiedNameProblems(key)),
  ];
}

function validateRequirement(
  field: string,
  { key = "", operator, values = [] }: Loose<LabelSelectorRequirement>,
): Cause[] {
  return [
    ...validateOperator(field, operator, values, ["In", "NotIn", "Exists", "DoesNotExist"]),
    ...invalidFor(`${field}.key`, key, qualifiedNameProblems(key)),
    ...values.flatMap((value, index) =>
      invalidFor(`${field}.values[${index}]`, value, labelValueProblems(value)),
    ),
  ];
}

function validateNodeRequirement(
  field: string,
  { key = "", operator, values = [] }: Loose<NodeSelectorRequirement>,
): Cause[] {
  const operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
  return [
    ...validateOperator(field, operator, values, operators),
    ...invalidFor(`${field}.key`, key, qualifiedNameProblems(key)),
  ];
}

function validateOperator(
  field: string,
  operator: string | undefined,
  values: readonly string[],
  operators: readonly string[],
): Cause[] {
  if (operator === undefined || !operators.includes(operator)) {
    return [invalidValue(`${field}.operator`, operator ?? "", "not a valid selector operator")];
  }
  if (operator === "In" || operator === "NotIn") {
    if (values.length > 0) return [];
    return [required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")];
  }
  if (operator === "Gt" || operator === "Lt") {
    if (values.length === 1) return [];
    return [required(`${field}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'")];
  }
  if (values.length === 0) return [];
  return [
    forbiddenField(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
  ];
}

/** Nodes can be selected by one field only, their name. */
function validateFieldRequirement(
  field: string,
  { key = "", operator = "", values = [] }: Loose<NodeSelectorRequirement>,
): Cause[] {
  return [
    ...(operator === "In" || operator === "NotIn"
      ? []
      : [invalidValue(`${field}.operator`, operator, "not a valid selector operator")]),
    ...(values.length === 1
      ? []
      : [
          required(
            `${field}.values`,
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
          ),
        ]),
    ...(key === "metadata.name"
      ? values.flatMap((value, index) =>
          invalidFor(`${field}.values[${index}]`, value, subdomainProblems(value)),
        )
      : [invalidValue(`${field}.key`, key, "not a valid field selector key")]),
  ];
}
