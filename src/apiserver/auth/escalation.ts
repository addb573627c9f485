import { jsonEqual } from "../../kube/patch/json.ts";
import { notFound, type StatusError } from "../errors.ts";
import { fieldAt, type ApiObject } from "../objects.ts";
import { resourceAccess, type ResourceAccess } from "./attributes.ts";
import type { Authorizer, RoleRef } from "./authorizer.ts";
import { refuse } from "./forbidden.ts";
import { coversRule, rulesOf, type PolicyRule } from "./rules.ts";
import { textAt } from "./stored.ts";
import { MASTERS, type UserInfo } from "./user.ts";

const RBAC = "rbac.authorization.k8s.io";

/** A write of a role or binding whose body is known. */
export interface RoleWrite {
  readonly access: ResourceAccess;
  readonly object: ApiObject;
  readonly previous?: ApiObject | undefined;
}

/**
 * Nobody hands out rights that they do not have: a role may hold only rules its author has already, and
 * a binding may refer only to such a role. The verbs `escalate` on roles and `bind` on the role referred
 * to are the ways around it. Throws 403; does nothing for other resources.
 */
export function checkEscalation(authorizer: Authorizer, user: UserInfo, write: RoleWrite): void {
  const { access } = write;
  if (access.group !== RBAC || user.groups.includes(MASTERS)) return;
  if (access.resource === "roles" || access.resource === "clusterroles") checkRole(authorizer, user, write);
  else checkBinding(authorizer, user, write);
}

const FULL_AUTHORITY: readonly PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
];

function checkRole(authorizer: Authorizer, user: UserInfo, { access, object, previous }: RoleWrite): void {
  const name = object.metadata.name ?? "";
  const rules = rulesOf(object);
  const isUnchanged = (field: string) => jsonEqual(fieldAt(object, field), fieldAt(previous, field));
  if (isUnchanged("rules") && isUnchanged("aggregationRule")) return;
  const escalate = resourceAccess({ ...access, verb: "escalate", subresource: "", name });
  if (authorizer.authorize(user, escalate).allowed) return;
  // What a role will collect is not known yet, so only who may do everything may write such a role.
  const granted =
    fieldAt(object, "aggregationRule") === undefined || isUnchanged("aggregationRule")
      ? rules
      : FULL_AUTHORITY;
  refuseUncovered(authorizer, user, granted, { ...access, name });
}

function checkBinding(authorizer: Authorizer, user: UserInfo, { access, object, previous }: RoleWrite): void {
  const isUnchanged = (field: string) => jsonEqual(fieldAt(object, field), fieldAt(previous, field));
  if (isUnchanged("roleRef") && isUnchanged("subjects")) return;
  const roleRef: RoleRef = {
    kind: textAt(object, "roleRef", "kind"),
    name: textAt(object, "roleRef", "name"),
  };
  const resource = roleRef.kind === "Role" ? "roles" : "clusterroles";
  const bind = resourceAccess({
    verb: "bind",
    group: RBAC,
    resource,
    namespace: access.namespace,
    name: roleRef.name,
  });
  if (authorizer.authorize(user, bind).allowed) return;
  const rules = authorizer.rulesOfRole(roleRef, access.namespace);
  if (rules === undefined) throw missingRole(roleRef, resource);
  refuseUncovered(authorizer, user, rules, { ...access, name: object.metadata.name ?? "" });
}

function refuseUncovered(
  authorizer: Authorizer,
  user: UserInfo,
  granted: readonly PolicyRule[],
  access: ResourceAccess,
): void {
  const { resourceRules, nonResourceRules } = authorizer.rulesFor(user, access.namespace);
  const held = [...resourceRules, ...nonResourceRules];
  const missing = granted.filter((rule) => !coversRule(held, rule));
  if (missing.length === 0) return;
  const groups = user.groups.map((group) => JSON.stringify(group)).join(" ");
  throw refuse(
    access,
    `user ${JSON.stringify(user.name)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n` +
      missing.map(describeRule).join("\n"),
  );
}

/** `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}` */
function describeRule(rule: PolicyRule): string {
  const fields = [
    ["APIGroups", rule.apiGroups],
    ["Resources", rule.resources],
    ["NonResourceURLs", rule.nonResourceURLs],
    ["ResourceNames", rule.resourceNames],
    ["Verbs", rule.verbs],
  ] as const;
  const texts = fields.flatMap(([name, values]) =>
    values === undefined ? [] : [`${name}:[${values.map((value) => JSON.stringify(value)).join(" ")}]`],
  );
  return `{${texts.join(", ")}}`;
}

function missingRole({ kind, name }: RoleRef, plural: string): StatusError {
  return notFound({ group: RBAC, version: "v1", kind, plural, namespaced: kind === "Role" }, name);
}
