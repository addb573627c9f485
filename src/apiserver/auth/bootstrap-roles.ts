import type { ApiObject } from "../objects.ts";
import { effectiveRules } from "./aggregation.ts";
import { POLICY_TABLE } from "./policy-table.ts";
import type { PolicyRule } from "./rules.ts";

/**
 * The roles and bindings that every cluster has: what kubectl users expect to find (`view`, `edit`, `admin`), what
 * every user needs to get started, and what the components of Kubernetes are bound to, from the node to each
 * controller. Names and rules are those that Kubernetes publishes. Sidecars bring their own roles in their manifests.
 */
export interface BootstrapPolicy {
  /** ClusterRoles, and Roles where there is a namespace. */
  readonly roles: readonly ApiObject[];
  readonly bindings: readonly ApiObject[];
}

interface Head {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

interface PolicyTable {
  readonly roles: readonly (Head & {
    readonly rules: readonly PolicyRule[];
    readonly aggregationRule?: object;
  })[];
  readonly bindings: readonly (Head & { readonly roleRef: object; readonly subjects: readonly object[] })[];
}

/** Read once, at the start: 55 kB that nobody needs afterwards. */
export function bootstrapPolicy(): BootstrapPolicy {
  const table = JSON.parse(POLICY_TABLE) as PolicyTable;
  const roles = table.roles.map((role) => bootstrapped("Role", role));
  return {
    // Aggregated roles show the rules they stand for, as in a cluster whose controller has filled them in.
    roles: roles.map((role) =>
      "aggregationRule" in role ? { ...role, rules: effectiveRules(role, () => roles) } : role,
    ),
    bindings: table.bindings.map((binding) => bootstrapped("RoleBinding", binding)),
  };
}

function bootstrapped(kind: string, { name, namespace, labels, ...fields }: Head): ApiObject {
  return {
    kind: namespace === undefined ? `Cluster${kind}` : kind,
    apiVersion: "rbac.authorization.k8s.io/v1",
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { "kubernetes.io/bootstrapping": "rbac-defaults", ...labels },
      // Whoever sets it to "false" keeps a role as it is; see ensureBootstrapPolicy.
      annotations: { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    },
    ...fields,
  };
}
