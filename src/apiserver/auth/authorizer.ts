import type { ObjectStore } from "../store/store.ts";
import type { AccessAttributes } from "./attributes.ts";
import { createNodeAuthorizer } from "./node-authorizer.ts";
import { createRbac } from "./rbac.ts";
import type { PolicyRule } from "./rules.ts";
import { AUTHENTICATED, MASTERS, nodeNameOf, type UserInfo } from "./user.ts";

/** Nothing is ever denied by a rule: what nobody allows is refused. */
export interface Decision {
  readonly allowed: boolean;
  /** Which rule allowed it, or why nobody could; often empty, as in kube-apiserver. */
  readonly reason: string;
}

/** What a user may do, as far as it can be listed. */
export interface RuleSet {
  readonly resourceRules: readonly PolicyRule[];
  readonly nonResourceRules: readonly PolicyRule[];
  /** There is more than what is listed. */
  readonly incomplete: boolean;
  readonly evaluationError?: string;
}

export interface Authorizer {
  authorize(user: UserInfo, access: AccessAttributes): Decision;
  /** In one namespace, cluster-wide rights included. */
  rulesFor(user: UserInfo, namespace: string): RuleSet;
  /** What a binding of this namespace would give; undefined where there is no such role. */
  rulesOfRole(roleRef: RoleRef, namespace: string): readonly PolicyRule[] | undefined;
}

export interface RoleRef {
  readonly kind: string;
  readonly name: string;
}

/**
 * `allow`: everybody who showed a credential may do everything, for one person on one machine. `rbac`:
 * roles and bindings decide, and node agents are kept to what belongs to their node.
 */
export type AuthorizationMode = "allow" | "rbac";

export function createAuthorizer(
  deps: { store: ObjectStore },
  { mode = "allow" }: { mode?: AuthorizationMode } = {},
): Authorizer {
  return mode === "allow" ? allowAuthenticated : createRoleAuthorizer(deps.store);
}

/** For everybody, without a credential: probes have none. What `system:public-info-viewer` grants. */
export const PUBLIC_PATHS: readonly string[] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

const EVERYTHING: RuleSet = {
  resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  incomplete: false,
};

const allowAuthenticated: Authorizer = {
  authorize({ groups }, access) {
    const isPublic = access.kind === "path" && access.verb === "get" && PUBLIC_PATHS.includes(access.path);
    return { allowed: isPublic || groups.includes(AUTHENTICATED) || groups.includes(MASTERS), reason: "" };
  },
  rulesFor({ groups }) {
    if (groups.includes(AUTHENTICATED) || groups.includes(MASTERS)) return EVERYTHING;
    const nonResourceRules = [{ verbs: ["get"], nonResourceURLs: PUBLIC_PATHS }];
    return { resourceRules: [], nonResourceRules, incomplete: false };
  },
  // Roles are kept here, but mean nothing.
  rulesOfRole: () => [],
};

/** Masters, then the node authorizer, then roles: the first to allow decides. */
function createRoleAuthorizer(store: ObjectStore): Authorizer {
  const rbac = createRbac(store);
  const nodes = createNodeAuthorizer(store);
  return {
    authorize(user, access) {
      if (user.groups.includes(MASTERS)) return { allowed: true, reason: "" };
      const byNode = nodes.authorize(user, access);
      if (byNode.allowed) return byNode;
      const byRole = rbac.authorize(user, access);
      if (byRole.allowed) return byRole;
      // Both reasons help; a line each, as the real server joins them.
      const reasons = [byNode.reason, byRole.reason].filter((reason) => reason !== "");
      return { allowed: false, reason: reasons.join("\n") };
    },
    rulesFor(user, namespace) {
      const rules = rbac.rulesFor(user, namespace);
      if (nodeNameOf(user) === undefined) return rules;
      const evaluationError = "node authorizer does not support user rule resolution";
      return { ...rules, incomplete: true, evaluationError };
    },
    rulesOfRole: (roleRef, namespace) => rbac.rulesOfRole(roleRef, namespace),
  };
}
