import { describe, expect, test } from "vitest";
import { requestAttributes } from "./attributes.ts";
import { ensureBootstrapPolicy } from "./bootstrap.ts";
import { givenCluster, type Cluster } from "./scenario.testing.ts";
import { serviceAccountUserName } from "./user.ts";

const ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/t/rolebindings";

async function givenUserWith(role: string) {
  const cluster = await givenCluster();
  await cluster.ok("POST", BINDINGS, {
    metadata: { name: "b" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ kind: "User", name: "ann" }],
  });
  return (request: string) => may(cluster, "ann", request);
}

function may({ authorizer }: Cluster, name: string, request: string): boolean {
  const [method = "", target = ""] = request.split(" ");
  return authorizer.authorize({ name, groups: ["system:authenticated"] }, requestAttributes(method, target))
    .allowed;
}

describe("the roles that users expect", () => {
  const t = "/api/v1/namespaces/t";
  for (const [request, view, edit, admin] of [
    [`GET ${t}/pods`, true, true, true],
    [`GET ${t}/persistentvolumeclaims/c/status`, true, true, true],
    [`GET ${t}`, true, true, true],
    [`GET ${t}/secrets`, false, true, true],
    [`POST ${t}/persistentvolumeclaims`, false, true, true],
    [`POST ${t}/pods/p/eviction`, false, true, true],
    [`POST ${t}/serviceaccounts/sa/token`, false, true, true],
    ["PUT /apis/coordination.k8s.io/v1/namespaces/t/leases/l", false, true, true],
    [`POST ${BINDINGS}`, false, false, true],
    ["GET /api/v1/namespaces/other/pods", false, false, false],
    ["GET /api/v1/nodes", false, false, false],
    [`PATCH ${t}`, false, false, false],
  ] as const) {
    test(request, async () => {
      expect((await givenUserWith("view"))(request), "view").toBe(view);
      expect((await givenUserWith("edit"))(request), "edit").toBe(edit);
      expect((await givenUserWith("admin"))(request), "admin").toBe(admin);
    });
  }

  test("a role with the label of `view` adds to all three", async () => {
    const cluster = await givenCluster();
    await cluster.ok("POST", BINDINGS, {
      metadata: { name: "b" },
      roleRef: { kind: "ClusterRole", name: "admin" },
      subjects: [{ kind: "User", name: "ann" }],
    });
    const request = "GET /apis/snapshot.storage.k8s.io/v1/namespaces/t/volumesnapshots";
    expect(may(cluster, "ann", request)).toBe(false);

    await cluster.ok("POST", ROLES, {
      metadata: { name: "snapshots", labels: { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
      rules: [{ apiGroups: ["snapshot.storage.k8s.io"], resources: ["volumesnapshots"], verbs: ["list"] }],
    });

    expect(may(cluster, "ann", request)).toBe(true);
  });
});

test("the attach/detach controller may do what its role says and not a verb more", async () => {
  const cluster = await givenCluster();
  const who = serviceAccountUserName({ namespace: "kube-system", name: "attachdetach-controller" });
  const ask = (request: string) => may(cluster, who, request);
  const attachments = "/apis/storage.k8s.io/v1/volumeattachments";

  for (const request of [
    "GET /api/v1/pods?watch=1",
    "GET /api/v1/persistentvolumes",
    "GET /api/v1/nodes/n",
    "PATCH /api/v1/nodes/n/status",
    "PATCH /apis/events.k8s.io/v1/namespaces/t/events/e",
    `POST ${attachments}`,
    `DELETE ${attachments}/va`,
    "GET /apis/storage.k8s.io/v1/csinodes",
  ]) {
    expect(ask(request), request).toBe(true);
  }
  for (const request of [
    "GET /api/v1/namespaces/t/pods/p",
    "GET /api/v1/persistentvolumes/pv",
    "PATCH /api/v1/nodes/n",
    `PATCH ${attachments}/va`,
    `PUT ${attachments}/va`,
    "GET /api/v1/secrets",
  ]) {
    expect(ask(request), request).toBe(false);
  }
});

describe("at every start", () => {
  test("nothing is written when everything is there", async () => {
    const { store, clock, random } = await givenCluster();
    const { revision } = store;

    await ensureBootstrapPolicy({ store, clock, random });

    expect(store.revision).toBe(revision);
  });

  test("what was taken away comes back, what was added stays, and `autoupdate: false` is respected", async () => {
    const cluster = await givenCluster();
    const added = { apiGroups: ["x.io"], resources: ["things"], verbs: ["get"] };
    await cluster.ok("PATCH", `${ROLES}/system:basic-user`, { rules: [added] }, merge);
    await cluster.ok("PATCH", `${ROLES}/system:discovery`, { rules: [], ...annotated("false") }, merge);
    await cluster.ok("DELETE", `${ROLES}/cluster-admin`);

    await ensureBootstrapPolicy(cluster);

    const rulesOf = async (name: string) =>
      (await cluster.ok("GET", `${ROLES}/${name}`)) as unknown as { rules?: object[] | null };
    expect((await rulesOf("system:basic-user")).rules).toHaveLength(3);
    expect((await rulesOf("system:basic-user")).rules).toContainEqual(added);
    expect((await rulesOf("system:discovery")).rules ?? []).toEqual([]);
    expect((await rulesOf("cluster-admin")).rules).toHaveLength(2);
  });
});

const merge = { headers: { "content-type": "application/merge-patch+json" } };

function annotated(autoupdate: string) {
  return { metadata: { annotations: { "rbac.authorization.kubernetes.io/autoupdate": autoupdate } } };
}
