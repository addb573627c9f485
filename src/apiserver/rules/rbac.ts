import type { PolicyRule, RoleBinding, RoleRef, Subject } from "kubernetes-types/rbac/v1.js";
import {
  IMMUTABLE,
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

const GROUP = "rbac.authorization.k8s.io";

/** ClusterRoles have the same shape, and roles may not grant paths. */
type RoleObject = LooseObject<{ rules: PolicyRule[] }>;
type BindingObject = LooseObject<RoleBinding>;

export const roleRules: RuleParts<RoleObject> = {
  validate: ({ rules = [] }) =>
    rules.flatMap((rule, index) => validatePolicyRule(`rules[${index}]`, rule, { allowsPaths: false })),
};

export const clusterRoleRules: RuleParts<RoleObject> = {
  validate: ({ rules = [] }) =>
    rules.flatMap((rule, index) => validatePolicyRule(`rules[${index}]`, rule, { allowsPaths: true })),
};

/** RoleBinding and ClusterRoleBinding. */
export const roleBindingRules: RuleParts<BindingObject> = {
  applyDefaults: (object) => ({
    ...object,
    roleRef: withDefaults(object.roleRef ?? {}, { apiGroup: GROUP }),
    ...(object.subjects === undefined ? {} : { subjects: object.subjects.map(subjectDefaults) }),
  }),

  validate: ({ roleRef = {}, subjects = [], metadata }) => [
    ...validateRoleRef("roleRef", roleRef, { isNamespaced: metadata.namespace !== undefined }),
    ...subjects.flatMap((subject, index) => validateSubject(`subjects[${index}]`, subject)),
  ],

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

function validatePolicyRule(
  field: string,
  { verbs = [], apiGroups = [], resources = [], nonResourceURLs = [] }: Loose<PolicyRule>,
  { allowsPaths }: { allowsPaths: boolean },
): Cause[] {
  const noVerbs =
    verbs.length === 0 ? [required(`${field}.verbs`, "verbs must contain at least one value")] : [];
  if (nonResourceURLs.length > 0) {
    const detail = allowsPaths
      ? "rules cannot apply to both regular resources and non-resource URLs"
      : "namespaced rules cannot apply to non-resource URLs";
    const isWrong = !allowsPaths || apiGroups.length > 0 || resources.length > 0;
    return [
      ...noVerbs,
      ...(isWrong ? [invalidValue(`${field}.nonResourceURLs`, nonResourceURLs, detail)] : []),
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
  { apiGroup = "", kind = "", name }: Loose<RoleRef>,
  { isNamespaced }: { isNamespaced: boolean },
): Cause[] {
  const kinds = isNamespaced ? ["Role", "ClusterRole"] : ["ClusterRole"];
  return [
    ...oneOf(`${field}.apiGroup`, apiGroup, [GROUP]),
    ...oneOf(`${field}.kind`, kind, kinds),
    ...requiredText(`${field}.name`, name),
  ];
}

function validateSubject(
  field: string,
  { kind = "", name, namespace = "", apiGroup = "" }: Loose<Subject>,
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
    ...oneOf(`${field}.apiGroup`, apiGroup, [isAccount ? "" : GROUP]),
    ...(isAccount && namespace === "" ? [required(`${field}.namespace`)] : []),
  ];
}
