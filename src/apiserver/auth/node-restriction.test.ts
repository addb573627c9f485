import { describe, expect, test } from "vitest";
import type { ApiObject } from "../objects.ts";
import { resourceAccess } from "./attributes.ts";
import { checkNodeRestriction, type NodeWrite } from "./node-restriction.ts";
import { bareStore, nodeUser } from "./scenario.testing.ts";

/** What node n1 is told; "ok" where it may go on. */
function verdict(write: NodeWrite, { store } = bareStore(), user = nodeUser("n1")): string {
  try {
    checkNodeRestriction(store, user, write);
    return "ok";
  } catch (error) {
    return (error as { status: { message: string } }).status.message;
  }
}

const named = (name: string, metadata: object = {}, spec: object = {}): ApiObject => ({
  metadata: { name, ...metadata },
  spec,
});

describe("a node agent creates only objects of its own name", () => {
  for (const [resource, group, why] of [
    ["nodes", "", 'node "n1" is not allowed to modify node "n2"'],
    ["csinodes", "storage.k8s.io", "can only access CSINode with the same name as the requesting node"],
    ["leases", "coordination.k8s.io", "can only access node lease with the same name as the requesting node"],
  ] as const) {
    test(resource, () => {
      const access = resourceAccess({ verb: "create", group, resource });

      expect(verdict({ access, object: named("n1") })).toBe("ok");
      expect(verdict({ access, object: named("n2") })).toMatch(new RegExp(`"n2" is forbidden: ${why}$`));
      expect(verdict({ access, object: { metadata: { generateName: "n" } } })).toMatch(/is forbidden/);
    });
  }
});

describe("of its own Node an agent may not change", () => {
  const access = resourceAccess({ verb: "patch", resource: "nodes", name: "n1" });
  const label = { "x.node-restriction.kubernetes.io/tier": "gold" };

  for (const [what, previous, object, expected] of [
    ["taints", named("n1"), named("n1", {}, { taints: [{ key: "k" }] }), "taints"],
    [
      "restricted labels",
      named("n1"),
      named("n1", { labels: label }),
      "labels: x.node-restriction.kubernetes.io/tier",
    ],
    [
      "restricted labels by removing them",
      named("n1", { labels: label }),
      named("n1"),
      "labels: x.node-restriction",
    ],
    ["owners", named("n1"), named("n1", { ownerReferences: [{ uid: "u" }] }), "ownerReferences"],
  ] as const) {
    test(what, () => {
      expect(verdict({ access, object, previous })).toContain(`is not allowed to modify ${expected}`);
    });
  }

  test("anything else it may", () => {
    const object = named("n1", { labels: { zone: "a" } }, { providerID: "p" });

    expect(verdict({ access, object, previous: named("n1") })).toBe("ok");
  });
});

describe("of a pod's status an agent may not", () => {
  const access = resourceAccess({
    verb: "patch",
    resource: "pods",
    subresource: "status",
    namespace: "t",
    name: "p",
  });
  const mine = named("p", {}, { nodeName: "n1" });

  test("touch the labels, by which others select it", () => {
    const object = named("p", { labels: { app: "db" } }, { nodeName: "n1" });

    expect(verdict({ access, object, previous: mine })).toContain("cannot update labels through pod status");
    expect(verdict({ access, object: mine, previous: mine })).toBe("ok");
  });

  test("write one that has moved in the meantime", () => {
    const previous = named("p", {}, { nodeName: "n2" });

    expect(verdict({ access, object: previous, previous })).toContain("spec.nodeName set to itself");
  });
});

describe("an agent gets tokens only for pods of its node", () => {
  const access = resourceAccess({
    verb: "create",
    resource: "serviceaccounts",
    subresource: "token",
    namespace: "t",
    name: "sa",
  });
  const asking = (boundObjectRef?: object): NodeWrite => ({
    access,
    object: { metadata: {}, spec: boundObjectRef === undefined ? {} : { boundObjectRef } },
  });

  test("bound to the very pod, by uid", async () => {
    const stage = bareStore();
    for (const [name, nodeName] of [
      ["mine", "n1"],
      ["other", "n2"],
    ] as const) {
      const pod = JSON.stringify({ metadata: { name, uid: `uid-${name}` }, spec: { nodeName } });
      await stage.store.create({ resource: "pods", namespace: "t", name }, () => pod);
    }
    const ask = (reference?: object) => verdict(asking(reference), stage);

    expect(ask({ kind: "Pod", name: "mine", uid: "uid-mine" })).toBe("ok");
    expect(ask()).toContain("not bound to a pod");
    expect(ask({ kind: "Secret", name: "s", uid: "u" })).toContain("not bound to a pod");
    expect(ask({ kind: "Pod", name: "mine" })).toContain("without a uid");
    expect(ask({ kind: "Pod", name: "mine", uid: "old" })).toContain("does not match");
    expect(ask({ kind: "Pod", name: "other", uid: "uid-other" })).toContain("scheduled on a different node");
  });

  test("nobody else is held to that", () => {
    expect(verdict(asking(), bareStore(), { name: "ann", groups: [] })).toBe("ok");
  });
});
