import type { ClusterRole, PolicyRule, RoleBinding, RoleRef, Subject } from "kubernetes-types/rbac/v1.js";
import {
  IMMUTABLE,
  invalidFor,
  invalidValue,
  notSupported,
  oneOf,
  required,
  requiredText,
  type Cause,
} from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { sameValue } from "./quantities.ts";
import { validateLabelSelector } from "./selectors.ts";
import { pathSegmentProblems, subdomainProblems } from "./text-rules.ts";

const GROUP = "rbac.authorization.k8s.io";

type RoleObject = LooseObject<{ rules: PolicyRule[] }>;
type ClusterRoleObject = LooseObject<Pick<ClusterRole, "rules" | "aggregationRule">>;
type BindingObject = LooseObject<RoleBinding>;

export const roleRules: RuleParts<RoleObject> = {
  validate: ({ rules = [] }) =>
    rules.flatMap((rule, index) => validatePolicyRule(`rules[${index}]`, rule, { allowsPaths: false })),
};

export const clusterRoleRules: RuleParts<ClusterRoleObject> = {
  validate: ({ rules = [], aggregationRule }) => [
    ...rules.flatMap((rule, index) => validatePolicyRule(`rules[${index}]`, rule, { allowsPaths: true })),
    ...(aggregationRule === undefined ? [] : validateAggregation("aggregationRule", aggregationRule)),
  ],
};

/** RoleBinding and ClusterRoleBinding. */
export const roleBindingRules: RuleParts<BindingObject> = {
  applyDefaults: (object) => ({
    ...object,
    roleRef: withDefaults(object.roleRef ?? {}, { apiGroup: GROUP }),
    ...(object.subjects === undefined ? {} : { subjects: object.subjects.map(subjectDefaults) }),
  }),

  validate: ({ roleRef = {}, subjects = [], metadata }) => {
    const scope = { isNamespaced: metadata.namespace !== undefined };
    return [
      ...validateRoleRef("roleRef", roleRef, scope),
      ...subjects.flatMap((subject, index) => validateSubject(`subjects[${index}]`, subject, scope)),
    ];
  },

  // Otherwise whoever may change a binding could make it a binding to anything.
  validateChange: ({ roleRef }, old) =>
    sameValue(roleRef, old.roleRef)
      ? []
      : [invalidValue("roleRef", roleRef, `cannot change roleRef: ${IMMUTABLE}`)],
};

function subjectDefaults(subject: Loose<Subject>): Loose<Subject> {
  return subject.kind === "User" || subject.kind === "Group"
    ? withDefaults(subject, { apiGroup: GROUP })
    : subject;
}

function validateAggregation(
  field: string,
  { clusterRoleSelectors = [] }: Loose<NonNullable<ClusterRole["aggregationRule"]>>,
): Cause[] {
  const selectors = `${field}.clusterRoleSelectors`;
  if (clusterRoleSelectors.length === 0) {
    return [required(selectors, "at least one clusterRoleSelector required if aggregationRule is non-nil")];
  }
  return clusterRoleSelectors.flatMap((selector, index) =>
    validateLabelSelector(`${selectors}[${index}]`, selector),
  );
}

function validatePolicyRule(
  field: string,
  { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: Loose<PolicyRule>,
  { allowsPaths }: { allowsPaths: boolean },
): Cause[] {
  const noVerbs =
    verbs.length === 0 ? [required(`${field}.verbs`, "verbs must contain at least one value")] : [];
  if (nonResourceURLs.length > 0) {
    const isMixed = apiGroups.length > 0 || resources.length > 0 || resourceNames.length > 0;
    return [
      ...noVerbs,
      ...invalidFor(`${field}.nonResourceURLs`, nonResourceURLs, [
        ...(allowsPaths ? [] : ["namespaced rules cannot apply to non-resource URLs"]),
        ...(isMixed ? ["rules cannot apply to both regular resources and non-resource URLs"] : []),
      ]),
    ];
  }
  return [
    ...noVerbs,
    ...(apiGroups.length === 0
      ? [required(`${field}.apiGroups`, "resource rules must supply at least one api group")]
      : []),
    ...(resources.length === 0
      ? [required(`${field}.resources`, "resource rules must supply at least one resource")]
      : []),
  ];
}

function validateRoleRef(
  field: string,
  { apiGroup = "", kind = "", name = "" }: Loose<RoleRef>,
  { isNamespaced }: { isNamespaced: boolean },
): Cause[] {
  const kinds = isNamespaced ? ["Role", "ClusterRole"] : ["ClusterRole"];
  return [
    ...oneOf(`${field}.apiGroup`, apiGroup, [GROUP]),
    ...oneOf(`${field}.kind`, kind, kinds),
    ...requiredText(`${field}.name`, name),
    ...invalidFor(`${field}.name`, name, pathSegmentProblems(name)),
  ];
}

/**
 * A service account of a RoleBinding may go without a namespace: it is then one of the binding's own, which is what
 * the authorizer takes it for. The object stays as it was written.
 */
function validateSubject(
  field: string,
  { kind = "", name = "", namespace = "", apiGroup = "" }: Loose<Subject>,
  { isNamespaced }: { isNamespaced: boolean },
): Cause[] {
  const isAccount = kind === "ServiceAccount";
  if (!isAccount && kind !== "User" && kind !== "Group") {
    return [
      ...requiredText(`${field}.name`, name),
      notSupported(`${field}.kind`, kind, ["ServiceAccount", "User", "Group"]),
    ];
  }
  return [
    ...requiredText(`${field}.name`, name),
    ...(isAccount && name !== "" ? invalidFor(`${field}.name`, name, subdomainProblems(name)) : []),
    ...oneOf(`${field}.apiGroup`, apiGroup, [isAccount ? "" : GROUP]),
    ...(isAccount && !isNamespaced && namespace === "" ? [required(`${field}.namespace`)] : []),
  ];
}
