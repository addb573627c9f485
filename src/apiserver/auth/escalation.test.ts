import { describe, expect, test } from "vitest";
import type { ApiObject } from "../objects.ts";
import { resourceAccess } from "./attributes.ts";
import { checkEscalation } from "./escalation.ts";
import { givenCluster, type Cluster } from "./scenario.testing.ts";
import type { UserInfo } from "./user.ts";

const RBAC = "rbac.authorization.k8s.io";
const BINDINGS = `/apis/${RBAC}/v1/namespaces/t/rolebindings`;
const ANN: UserInfo = { name: "ann", groups: ["devs"] };

/** ann is `admin` in t and nothing elsewhere. */
async function givenAdmin() {
  const cluster = await givenCluster();
  await cluster.ok("POST", BINDINGS, bindingOf("ClusterRole", "admin", "User", "ann"));
  return cluster;
}

function attempt(
  cluster: Cluster,
  resource: string,
  object: ApiObject,
  options: { previous?: ApiObject; user?: UserInfo } = {},
): string {
  const namespace = resource.startsWith("cluster") ? "" : "t";
  const access = resourceAccess({ verb: "create", group: RBAC, resource, namespace });
  try {
    checkEscalation(cluster.authorizer, options.user ?? ANN, { access, object, previous: options.previous });
    return "ok";
  } catch (error) {
    return (error as { status: { message: string } }).status.message;
  }
}

describe("who writes a role", () => {
  test("may put in what they may do themselves", async () => {
    const cluster = await givenAdmin();

    expect(attempt(cluster, "roles", roleOf("r", ["get", "delete"], "pods"))).toBe("ok");
  });

  test("may not put in more, and is told what", async () => {
    const cluster = await givenAdmin();

    expect(attempt(cluster, "roles", roleOf("r", ["get"], "pods", "nodes"))).toBe(
      'roles.rbac.authorization.k8s.io "r" is forbidden: user "ann" (groups=["devs"]) is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["pods" "nodes"], Verbs:["get"]}',
    );
    // What ann has in t, she does not have everywhere.
    expect(attempt(cluster, "clusterroles", roleOf("r", ["get"], "pods"))).toContain("not currently held");
  });

  test("may leave alone what somebody else put in", async () => {
    const cluster = await givenAdmin();
    const previous = roleOf("r", ["*"], "*");
    const labelled = { ...previous, metadata: { name: "r", labels: { a: "b" } } };

    expect(attempt(cluster, "roles", labelled, { previous })).toBe("ok");
  });

  test("may have a role collect others only with full authority", async () => {
    const cluster = await givenAdmin();
    const collecting = { ...roleOf("r", []), aggregationRule: { clusterRoleSelectors: [{}] } };

    expect(attempt(cluster, "clusterroles", collecting)).toContain('Verbs:["*"]');
    expect(
      attempt(cluster, "clusterroles", collecting, { user: { name: "root", groups: ["system:masters"] } }),
    ).toBe("ok");
  });
});

describe("who binds a role", () => {
  test("must hold it, or be allowed to bind it", async () => {
    const cluster = await givenAdmin();
    await cluster.ok("POST", `/apis/${RBAC}/v1/clusterroles`, {
      metadata: { name: "binder" },
      rules: [
        { apiGroups: [RBAC], resources: ["clusterroles"], resourceNames: ["cluster-admin"], verbs: ["bind"] },
      ],
    });

    expect(attempt(cluster, "rolebindings", bindingOf("ClusterRole", "view", "User", "eve"))).toBe("ok");
    const everything = bindingOf("ClusterRole", "cluster-admin", "User", "ann");
    expect(attempt(cluster, "rolebindings", everything)).toContain("not currently held");
    expect(attempt(cluster, "rolebindings", bindingOf("Role", "gone", "User", "ann"))).toBe(
      'roles.rbac.authorization.k8s.io "gone" not found',
    );

    await cluster.ok("POST", BINDINGS, bindingOf("ClusterRole", "binder", "Group", "devs"));
    expect(attempt(cluster, "rolebindings", everything)).toBe("ok");
  });
});

test("in allow mode roles mean nothing, and anybody may write them", async () => {
  const cluster = await givenCluster({ mode: "allow" });
  const user = { name: "ann", groups: ["system:authenticated"] };

  expect(attempt(cluster, "clusterroles", roleOf("r", ["*"], "*"), { user })).toBe("ok");
  expect(attempt(cluster, "rolebindings", bindingOf("Role", "gone", "User", "ann"), { user })).toBe("ok");
});

function roleOf(name: string, verbs: string[], ...resources: string[]): ApiObject {
  return { metadata: { name }, rules: [{ apiGroups: [""], resources, verbs }] };
}

function bindingOf(roleKind: string, role: string, kind: string, name: string): ApiObject {
  return {
    metadata: { name: `${role}-${name}` },
    roleRef: { apiGroup: RBAC, kind: roleKind, name: role },
    subjects: [{ kind, name }],
  };
}
