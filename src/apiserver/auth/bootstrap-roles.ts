import { effectiveRules } from "./aggregation.ts";
import { PUBLIC_PATHS } from "./authorizer.ts";
import { OPENID_PATHS } from "./openid.ts";
import type { ApiObject } from "../objects.ts";
import type { PolicyRule } from "./rules.ts";
import { AUTHENTICATED, MASTERS } from "./user.ts";

/**
 * The roles and bindings that every cluster has, as far as the kinds served here go: what kubectl users
 * expect to find (`view`, `edit`, `admin`), what every user needs to get started, and the roles that
 * volume components are bound to. Names and rules are those of Kubernetes. Sidecars bring their own roles
 * in their manifests.
 */

const READ = ["get", "list", "watch"];
const WRITE = ["create", "delete", "deletecollection", "patch", "update"];
const RECORD = ["create", "patch", "update"];

function on(verbs: readonly string[], group: string | readonly string[], ...resources: string[]): PolicyRule {
  return { verbs, apiGroups: [group].flat(), resources };
}

function paths(...nonResourceURLs: string[]): PolicyRule {
  return { verbs: ["get"], nonResourceURLs };
}

const EVENTS = on(RECORD, ["", "events.k8s.io"], "events");
const STORAGE = "storage.k8s.io";
const RBAC = "rbac.authorization.k8s.io";

const RULES: Readonly<Record<string, readonly PolicyRule[]>> = {
  "cluster-admin": [on(["*"], "*", "*"), { verbs: ["*"], nonResourceURLs: ["*"] }],
  "system:aggregate-to-admin": [
    on(["create"], "authorization.k8s.io", "localsubjectaccessreviews"),
    on([...WRITE, ...READ], RBAC, "rolebindings", "roles"),
  ],
  "system:aggregate-to-edit": [
    on(READ, "", "secrets"),
    on(["impersonate"], "", "serviceaccounts"),
    on(WRITE, "", "pods", "configmaps", "events", "persistentvolumeclaims", "secrets", "serviceaccounts"),
    on(["create"], "", "pods/eviction", "serviceaccounts/token"),
    on([...WRITE, ...READ], "coordination.k8s.io", "leases"),
  ],
  // Secrets are left out: who can read them can act as every account of the namespace.
  "system:aggregate-to-view": [
    on(
      READ,
      "",
      "configmaps",
      "persistentvolumeclaims",
      "persistentvolumeclaims/status",
      "pods",
      "serviceaccounts",
    ),
    on(READ, "", "bindings", "events", "namespaces/status", "pods/log", "pods/status"),
    on(READ, "", "namespaces"),
  ],
  "system:auth-delegator": [
    on(["create"], "authentication.k8s.io", "tokenreviews"),
    on(["create"], "authorization.k8s.io", "subjectaccessreviews"),
  ],
  "system:basic-user": [
    on(["create"], "authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
    on(["create"], "authentication.k8s.io", "selfsubjectreviews"),
  ],
  "system:discovery": [
    paths(
      "/api",
      "/api/*",
      "/apis",
      "/apis/*",
      "/healthz",
      "/livez",
      "/openapi",
      "/openapi/*",
      "/readyz",
      "/version",
      "/version/",
    ),
  ],
  "system:public-info-viewer": [paths(...PUBLIC_PATHS)],
  "system:monitoring": [
    paths(
      "/healthz",
      "/healthz/*",
      "/livez",
      "/livez/*",
      "/metrics",
      "/metrics/slis",
      "/readyz",
      "/readyz/*",
    ),
  ],
  "system:service-account-issuer-discovery": [paths(OPENID_PATHS.configuration, OPENID_PATHS.keys)],
  "system:persistent-volume-provisioner": [
    on(["create", "delete", ...READ], "", "persistentvolumes"),
    on([...READ, "update"], "", "persistentvolumeclaims"),
    on(READ, STORAGE, "storageclasses"),
    on(["watch"], "", "events"),
    EVENTS,
  ],
  "system:volume-scheduler": [
    on([...READ, "patch", "update"], "", "persistentvolumes", "persistentvolumeclaims"),
    on(READ, STORAGE, "storageclasses"),
  ],
  // For the eye: node agents are judged by the node authorizer, and nobody is bound to this.
  "system:node": [
    on(["create"], "authentication.k8s.io", "tokenreviews"),
    on(["create"], "authorization.k8s.io", "localsubjectaccessreviews", "subjectaccessreviews"),
    on(["create", ...READ, "patch", "update"], "", "nodes"),
    on(["patch", "update"], "", "nodes/status", "pods/status", "persistentvolumeclaims/status"),
    on(RECORD, "", "events"),
    on([...READ, "delete"], "", "pods"),
    on(["create"], "", "pods/eviction", "serviceaccounts/token"),
    on(READ, "", "configmaps", "secrets"),
    on(["get"], "", "persistentvolumeclaims", "persistentvolumes"),
    on(["create", "delete", "get", "patch", "update"], "coordination.k8s.io", "leases"),
    on(["get"], STORAGE, "volumeattachments"),
    on(READ, STORAGE, "csidrivers", "storageclasses", "volumeattributesclasses"),
    on(["create", "delete", "get", "patch", "update"], STORAGE, "csinodes"),
  ],
  "system:controller:attachdetach-controller": [
    on(["list", "watch"], "", "persistentvolumes", "persistentvolumeclaims"),
    on(READ, "", "nodes"),
    on(["patch", "update"], "", "nodes/status"),
    on(["list", "watch"], "", "pods"),
    EVENTS,
    on(["get", "create", "delete", "list", "watch"], STORAGE, "volumeattachments"),
    on(READ, STORAGE, "csidrivers", "csinodes"),
  ],
};

/** Roles made of others, and the label by which each takes part in a larger one. */
const AGGREGATED = ["view", "edit", "admin"] as const;

const aggregateTo = (role: string) => `rbac.authorization.k8s.io/aggregate-to-${role}`;

function labelsOf(name: string): Record<string, string> {
  const index = AGGREGATED.findIndex((role) => role === name);
  const larger = index < 0 ? undefined : AGGREGATED[index + 1];
  const part = AGGREGATED.find((role) => name === `system:aggregate-to-${role}`) ?? larger;
  return part === undefined ? {} : { [aggregateTo(part)]: "true" };
}

function bootstrapped(kind: string, name: string, fields: object): ApiObject {
  return {
    kind,
    apiVersion: `${RBAC}/v1`,
    metadata: {
      name,
      labels: { "kubernetes.io/bootstrapping": "rbac-defaults", ...labelsOf(name) },
      // Whoever sets it to "false" keeps a role as it is; see ensureBootstrapPolicy.
      annotations: { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    },
    ...fields,
  };
}

const plainRoles = Object.entries(RULES).map(([name, rules]) => bootstrapped("ClusterRole", name, { rules }));
const aggregatedRoles = AGGREGATED.map((name) =>
  bootstrapped("ClusterRole", name, {
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregateTo(name)]: "true" } }] },
  }),
);

/** Aggregated roles show the rules they stand for, as in a cluster whose controller has filled them in. */
export const BOOTSTRAP_ROLES: readonly ApiObject[] = [...plainRoles, ...aggregatedRoles].map((role) =>
  "rules" in role
    ? role
    : { ...role, rules: effectiveRules(role, () => [...plainRoles, ...aggregatedRoles]) },
);

function bind(role: string, ...subjects: object[]): ApiObject {
  const roleRef = { apiGroup: RBAC, kind: "ClusterRole", name: role };
  return bootstrapped("ClusterRoleBinding", role, { roleRef, subjects });
}

const group = (name: string) => ({ apiGroup: RBAC, kind: "Group", name });
const user = (name: string) => ({ apiGroup: RBAC, kind: "User", name });

export const BOOTSTRAP_BINDINGS: readonly ApiObject[] = [
  bind("cluster-admin", group(MASTERS)),
  bind("system:basic-user", group(AUTHENTICATED)),
  bind("system:discovery", group(AUTHENTICATED)),
  bind("system:public-info-viewer", group(AUTHENTICATED), group("system:unauthenticated")),
  bind("system:monitoring", group("system:monitoring")),
  bind("system:service-account-issuer-discovery", group("system:serviceaccounts")),
  bind("system:volume-scheduler", user("system:kube-scheduler")),
  bind("system:node"),
  bind("system:controller:attachdetach-controller", {
    kind: "ServiceAccount",
    name: "attachdetach-controller",
    namespace: "kube-system",
  }),
];
