import type { ObjectStore, StoreKey } from "../store/store.ts";
import type { ApiObject } from "../objects.ts";
import { effectiveRules } from "./aggregation.ts";
import type { AccessAttributes } from "./attributes.ts";
import type { Authorizer, Decision } from "./authorizer.ts";
import { createIndexFeed, type IndexTarget } from "./index-feed.ts";
import { BindingIndex, type Grant } from "./rbac-bindings.ts";
import { allowsPath, allowsResource, rulesOf, type PolicyRule } from "./rules.ts";

const RBAC_GROUP = "rbac.authorization.k8s.io";

/**
 * Roles and bindings of the store as answers. Bindings are found by the user and its groups, so that a
 * question costs what that user was granted, not how many bindings exist. Every question first catches up
 * with the store: a role that one request created counts for the next.
 */
export function createRbac(store: ObjectStore): Authorizer {
  const bindings = new BindingIndex();
  const roles = new RoleIndex();
  const feeds = [
    createIndexFeed(store, `clusterrolebindings.${RBAC_GROUP}`, bindings.target("ClusterRoleBinding")),
    createIndexFeed(store, `rolebindings.${RBAC_GROUP}`, bindings.target("RoleBinding")),
    createIndexFeed(store, `clusterroles.${RBAC_GROUP}`, roles.target("ClusterRole")),
    createIndexFeed(store, `roles.${RBAC_GROUP}`, roles.target("Role")),
  ];
  const sync = () => feeds.forEach((feed) => feed.sync());

  return {
    authorize(user, access) {
      sync();
      return decide(bindings.grantsFor(user, namespaceOf(access)), roles, access);
    },
    rulesFor(user, namespace) {
      sync();
      const rules = [...bindings.grantsFor(user, namespace)].flatMap((grant) => roles.rulesOf(grant) ?? []);
      return {
        resourceRules: rules.filter((rule) => rule.resources !== undefined),
        nonResourceRules: rules.filter((rule) => rule.nonResourceURLs !== undefined),
        incomplete: false,
      };
    },
    rulesOfRole(roleRef, namespace) {
      sync();
      return roles.rulesOf({ roleRef, namespace });
    },
  };
}

function namespaceOf(access: AccessAttributes): string {
  return access.kind === "resource" ? access.namespace : "";
}

function decide(grants: Iterable<Grant>, roles: RoleIndex, access: AccessAttributes): Decision {
  const missing = new Set<string>();
  for (const grant of grants) {
    const rules = roles.rulesOf(grant);
    if (rules === undefined) missing.add(describeMissing(grant));
    else if (rules.some((rule) => allows(rule, access))) {
      return { allowed: true, reason: `RBAC: allowed by ${grant.description}` };
    }
  }
  const [first, ...more] = missing;
  if (first === undefined) return { allowed: false, reason: "" };
  return { allowed: false, reason: `RBAC: ${more.length === 0 ? first : `[${[...missing].join(", ")}]`}` };
}

function allows(rule: PolicyRule, access: AccessAttributes): boolean {
  return access.kind === "path" ? allowsPath(rule, access) : allowsResource(rule, access);
}

function describeMissing({ roleRef }: Grant): string {
  return `${roleRef.kind.toLowerCase()}.${RBAC_GROUP} ${JSON.stringify(roleRef.name)} not found`;
}

/** Roles by where they are; ClusterRoles under the empty namespace. */
class RoleIndex {
  readonly #roles = new Map<string, readonly PolicyRule[]>();
  readonly #clusterRoles = new Map<string, ApiObject>();
  /** What ClusterRoles stand for, until any of them changes: one may collect the rules of another. */
  readonly #effective = new Map<string, readonly PolicyRule[]>();

  target(kind: "Role" | "ClusterRole"): IndexTarget {
    return kind === "Role" ? this.#roleTarget() : this.#clusterRoleTarget();
  }

  rulesOf({ roleRef, namespace }: Pick<Grant, "roleRef" | "namespace">): readonly PolicyRule[] | undefined {
    if (roleRef.kind === "Role") return this.#roles.get(`${namespace}/${roleRef.name}`);
    const role = roleRef.kind === "ClusterRole" ? this.#clusterRoles.get(roleRef.name) : undefined;
    if (role === undefined) return undefined;
    let rules = this.#effective.get(roleRef.name);
    if (rules === undefined) {
      rules = effectiveRules(role, () => this.#clusterRoles.values());
      this.#effective.set(roleRef.name, rules);
    }
    return rules;
  }

  #roleTarget(): IndexTarget {
    const pathOf = ({ namespace, name }: StoreKey) => `${namespace}/${name}`;
    return {
      put: (key, role) => void this.#roles.set(pathOf(key), rulesOf(role)),
      remove: (key) => void this.#roles.delete(pathOf(key)),
      clear: () => this.#roles.clear(),
    };
  }

  #clusterRoleTarget(): IndexTarget {
    return {
      put: ({ name }, role) => {
        this.#clusterRoles.set(name, role);
        this.#effective.clear();
      },
      remove: ({ name }) => {
        this.#clusterRoles.delete(name);
        this.#effective.clear();
      },
      clear: () => {
        this.#clusterRoles.clear();
        this.#effective.clear();
      },
    };
  }
}
