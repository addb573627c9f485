import { describe, expect, test } from "vitest";
import { givenCluster, type Cluster } from "./scenario.testing.ts";

const ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/t/roles";
const BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/t/rolebindings";
const PODS = "/api/v1/namespaces/t/pods";
const REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews";

describe("scenarios 60 to 63 of the specification", () => {
  test("60: a token is good for its audience and no other", async () => {
    const cluster = await givenCluster();
    await cluster.ok("POST", "/api/v1/namespaces/t/serviceaccounts", { metadata: { name: "builder" } });
    const { status } = await cluster.ok("POST", "/api/v1/namespaces/t/serviceaccounts/builder/token", {
      spec: { audiences: ["registry"] },
    });
    const review = (audiences: string[]) =>
      cluster.ok("POST", REVIEW, { spec: { token: status["token"], audiences } });

    expect((await review(["registry", "x"])).status).toMatchObject({
      authenticated: true,
      audiences: ["registry"],
    });
    const refused = (await review(["x"])).status;
    expect(refused).toEqual({
      user: {},
      error: '[invalid bearer token, token audiences ["registry"] is invalid for the target audiences ["x"]]',
    });
  });

  test("61: the token of a deleted account is refused, here from the next request on", async () => {
    const cluster = await givenCluster({ mode: "allow" });
    await cluster.ok("POST", "/api/v1/namespaces/t/serviceaccounts", { metadata: { name: "sa" } });
    const { status } = await cluster.ok("POST", "/api/v1/namespaces/t/serviceaccounts/sa/token", {});
    const as = String(status["token"]);
    expect((await cluster.send("GET", PODS, undefined, { as })).status).toBe(200);

    await cluster.ok("DELETE", "/api/v1/namespaces/t/serviceaccounts/sa");

    expect((await cluster.send("GET", PODS, undefined, { as })).status).toBe(401);
    const review = await cluster.ok("POST", REVIEW, { spec: { token: as } });
    expect(review.status).toEqual({
      user: {},
      error: "[invalid bearer token, service account t/sa has been deleted]",
    });
  });

  test("62: a role in t allows in t, and the refusal elsewhere has the text that people know", async () => {
    const cluster = await givenCluster();
    await grant(cluster, "bob");

    expect((await cluster.send("GET", PODS, undefined, { as: "bobtoken" })).status).toBe(200);
    const { status, body } = await cluster.send("GET", "/api/v1/pods", undefined, { as: "bobtoken" });
    expect([status, body.message]).toEqual([
      403,
      'pods is forbidden: User "bob" cannot list resource "pods" in API group "" at the cluster scope',
    ]);
  });

  test("an account that a RoleBinding names without a namespace is one of the binding's own", async () => {
    const cluster = await givenCluster();
    await cluster.ok("POST", "/api/v1/namespaces", { metadata: { name: "other" } });
    for (const namespace of ["t", "other"]) {
      await cluster.ok("POST", `/api/v1/namespaces/${namespace}/serviceaccounts`, {
        metadata: { name: "sa" },
      });
    }
    const tokenOf = async (namespace: string) => {
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts/sa/token`;
      return String((await cluster.ok("POST", path, {})).status["token"]);
    };

    await cluster.ok("POST", ROLES, role(["list"]));
    const bound = await cluster.ok("POST", BINDINGS, {
      metadata: { name: "reader" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
      subjects: [{ kind: "ServiceAccount", name: "sa" }],
    });

    expect(bound).toMatchObject({ subjects: [{ kind: "ServiceAccount", name: "sa" }] });
    expect((await cluster.send("GET", PODS, undefined, { as: await tokenOf("t") })).status).toBe(200);
    expect((await cluster.send("GET", PODS, undefined, { as: await tokenOf("other") })).status).toBe(403);
  });

  test("63: without a credential health is told and pods are not; a wrong token is 401", async () => {
    const cluster = await givenCluster();

    expect((await cluster.send("GET", "/healthz", undefined, { user: null })).text).toBe("ok");
    expect((await cluster.send("GET", "/api/v1/pods", undefined, { user: null })).status).toBe(403);
    expect((await cluster.send("GET", "/healthz", undefined, { as: "wrong" })).status).toBe(401);
  });
});

describe("allow mode", () => {
  test("everybody with a credential may do everything; nobody else may but ask for health and version", async () => {
    const cluster = await givenCluster({ mode: "allow" });
    const status = async (path: string, user: { name: string; groups: string[] } | null) =>
      (await cluster.send("GET", path, undefined, { user })).status;

    expect(await status("/api/v1/secrets", { name: "ann", groups: [] })).toBe(200);
    expect(await status("/version", null)).toBe(200);
    for (const path of ["/api", "/api/v1/pods", "/metrics"]) expect(await status(path, null), path).toBe(403);
  });

  test("`kubectl auth can-i --list` says so", async () => {
    const cluster = await givenCluster({ mode: "allow" });
    const path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

    const { status } = await cluster.ok("POST", path, { spec: { namespace: "t" } }, { as: "bobtoken" });

    expect(status["resourceRules"]).toEqual([{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }]);
  });
});

describe("rights change with the write that changes them", () => {
  test("granted, narrowed and taken away: each counts for the very next request", async () => {
    const cluster = await givenCluster();
    const allowed = async () =>
      (await cluster.send("GET", PODS, undefined, { as: "bobtoken" })).status === 200;
    expect(await allowed()).toBe(false);

    await grant(cluster, "bob");
    expect(await allowed()).toBe(true);

    await cluster.ok("PUT", `${ROLES}/reader`, role(["get"]));
    expect(await allowed()).toBe(false);

    await cluster.ok("PUT", `${ROLES}/reader`, role(["list"]));
    expect(await allowed()).toBe(true);

    await cluster.ok("DELETE", `${ROLES}/reader`);
    const { body } = await cluster.send("GET", PODS, undefined, { as: "bobtoken" });
    expect(body.message).toMatch(/: RBAC: role\.rbac\.authorization\.k8s\.io "reader" not found$/);

    await cluster.ok("DELETE", `${BINDINGS}/reader`);
    const after = await cluster.send("GET", PODS, undefined, { as: "bobtoken" });
    expect(after.body.message).not.toMatch(/RBAC/);
  });
});

describe("impersonation", () => {
  test("an administrator sees what somebody else sees, groups, uid and extra included", async () => {
    const cluster = await givenCluster();

    const { status } = await cluster.ok(
      "POST",
      "/apis/authentication.k8s.io/v1/selfsubjectreviews",
      {},
      {
        headers: {
          "impersonate-user": "jane",
          "impersonate-group": "devs, ops",
          "impersonate-uid": "u-1",
          "impersonate-extra-example.com%2fscopes": "view, edit",
        },
      },
    );

    expect(status["userInfo"]).toEqual({
      username: "jane",
      uid: "u-1",
      groups: ["devs", "ops", "system:authenticated"],
      extra: { "example.com/scopes": ["view", "edit"] },
    });
  });

  test("an account gets its groups, and whoever may act as it still may not join more", async () => {
    const cluster = await givenCluster();
    await grant(cluster, "system:serviceaccount:t:sa");
    await cluster.ok("POST", BINDINGS, {
      metadata: { name: "editors" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" },
      subjects: [{ kind: "Group", name: "editors" }],
    });
    const account = { "impersonate-user": "system:serviceaccount:t:sa" };
    const as = (headers: Record<string, string>, groups: string[]) =>
      cluster.send("GET", PODS, undefined, { headers, user: { name: "ed", groups } });

    expect((await as(account, ["editors"])).status).toBe(200);
    expect((await as(account, [])).body.message).toBe(
      'serviceaccounts "sa" is forbidden: User "ed" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "t"',
    );
    const { body } = await as({ ...account, "impersonate-group": "system:masters" }, ["editors"]);
    expect(body.message).toBe(
      'groups "system:masters" is forbidden: User "ed" cannot impersonate resource "groups" in API group "" at the cluster scope',
    );
  });

  test("groups without a user are a mistake, not the sender itself", async () => {
    const cluster = await givenCluster();

    const { status } = await cluster.send("GET", PODS, undefined, {
      headers: { "impersonate-group": "devs" },
    });

    expect(status).toBe(400);
  });
});

describe("access reviews", () => {
  const SUBJECT = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
  const LOCAL = "/apis/authorization.k8s.io/v1/namespaces/t/localsubjectaccessreviews";
  const listPods = { verb: "list", resource: "pods", namespace: "t" };

  test("say which binding allowed it", async () => {
    const cluster = await givenCluster();
    await grant(cluster, "bob");

    const { status } = await cluster.ok("POST", SUBJECT, {
      spec: { user: "bob", resourceAttributes: listPods },
    });

    expect(status).toEqual({
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "reader/t" of Role "reader" to User "bob"',
    });
  });

  for (const [what, path, spec, field] of [
    [
      "both kinds of attributes",
      SUBJECT,
      { user: "b", resourceAttributes: {}, nonResourceAttributes: {} },
      "spec.nonResourceAttributes",
    ],
    ["neither", SUBJECT, { user: "b" }, "spec.resourceAttributes"],
    ["nobody", SUBJECT, { resourceAttributes: {} }, "spec.user"],
    [
      "another namespace",
      LOCAL,
      { user: "b", resourceAttributes: { namespace: "x" } },
      "spec.resourceAttributes.namespace",
    ],
    [
      "a path in a namespace",
      LOCAL,
      { user: "b", nonResourceAttributes: { path: "/x" } },
      "spec.nonResourceAttributes",
    ],
  ] as const) {
    test(`about ${what} are 422`, async () => {
      const cluster = await givenCluster();

      const { status, body } = await cluster.send("POST", path, { spec });

      expect([status, body.details.causes[0]?.field]).toEqual([422, field]);
    });
  }

  test("about a node agent take the selector into account", async () => {
    const cluster = await givenCluster();
    const ask = async (fieldSelector: object) => {
      const resourceAttributes = { verb: "list", resource: "pods", fieldSelector };
      const spec = { user: "system:node:n1", groups: ["system:nodes"], resourceAttributes };
      return (await cluster.ok("POST", SUBJECT, { spec })).status["allowed"];
    };

    expect(await ask({ rawSelector: "spec.nodeName=n1" })).toBe(true);
    expect(await ask({ requirements: [{ key: "spec.nodeName", operator: "In", values: ["n1"] }] })).toBe(
      true,
    );
    expect(
      await ask({ requirements: [{ key: "spec.nodeName", operator: "In", values: ["n1", "n2"] }] }),
    ).toBe(false);
    expect(await ask({ rawSelector: "spec.nodeName=n2" })).toBe(false);
  });
});

function role(verbs: string[]) {
  return { metadata: { name: "reader" }, rules: [{ apiGroups: [""], resources: ["pods"], verbs }] };
}

async function grant(cluster: Cluster, user: string): Promise<void> {
  await cluster.ok("POST", ROLES, role(["get", "list", "watch"]));
  await cluster.ok("POST", BINDINGS, {
    metadata: { name: "reader" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
    subjects: [{ kind: "User", name: user }],
  });
}
