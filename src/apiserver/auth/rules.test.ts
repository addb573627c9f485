import { describe, expect, test } from "vitest";
import { resourceAccess } from "./attributes.ts";
import { effectiveRules } from "./aggregation.ts";
import { allowsPath, allowsResource, coversRule, rulesOf, type PolicyRule } from "./rules.ts";

describe("a rule of resources", () => {
  const listPods = { verb: "list", resource: "pods" };
  const status = { verb: "update", resource: "pods", subresource: "status", name: "p" };

  for (const [what, rule, asked, allowed] of [
    ["names the resource", on(["list"], "pods"), listPods, true],
    ["names another verb", on(["get"], "pods"), listPods, false],
    ["has the star of verbs", on(["*"], "pods"), listPods, true],
    ["names another group", { ...on(["list"], "pods"), apiGroups: ["apps"] }, listPods, false],
    [
      "has the star of groups",
      { ...on(["list"], "pods"), apiGroups: ["*"] },
      { ...listPods, group: "apps" },
      true,
    ],
    ["has the star of resources", on(["update"], "*"), status, true],
    ["names the resource, not its status", on(["update"], "pods"), status, false],
    ["names the status", on(["update"], "pods/status"), status, true],
    ["names the status of all", on(["update"], "*/status"), status, true],
    ["names the status of all, which no resource itself is", on(["list"], "*/status"), listPods, false],
    ["has a star where none counts", on(["update"], "pods/*"), status, false],
    ["names the object", { ...on(["update"], "pods/status"), resourceNames: ["p"] }, status, true],
    ["names another object", { ...on(["update"], "pods/status"), resourceNames: ["q"] }, status, false],
    [
      "names an object, and a list has none",
      { ...on(["list"], "pods"), resourceNames: ["p"] },
      listPods,
      false,
    ],
    ["has no groups", { verbs: ["list"], resources: ["pods"] }, listPods, false],
    ["is about paths", { verbs: ["*"], nonResourceURLs: ["*"] }, listPods, false],
  ] as const) {
    test(`that ${what} ${allowed ? "allows" : "does not allow"}`, () => {
      expect(allowsResource(rule, resourceAccess(asked))).toBe(allowed);
    });
  }
});

describe("a rule of paths", () => {
  for (const [pattern, path, allowed] of [
    ["/metrics", "/metrics", true],
    ["/metrics", "/metrics/slis", false],
    ["/metrics/*", "/metrics/slis", true],
    ["/metrics/*", "/metrics", false],
    ["/api*", "/apis/storage.k8s.io", true],
    ["*", "/anything", true],
    ["/a/*/c", "/a/b/c", false],
  ] as const) {
    test(`${pattern} ${allowed ? "covers" : "leaves out"} ${path}`, () => {
      expect(allowsPath({ verbs: ["get"], nonResourceURLs: [pattern] }, { verb: "get", path })).toBe(allowed);
      expect(allowsPath({ verbs: ["get"], nonResourceURLs: [pattern] }, { verb: "post", path })).toBe(false);
    });
  }
});

test("a role that is not one grants nothing", () => {
  for (const rules of [undefined, null, "all", [null, 7, { verbs: "*" }], { verbs: ["*"] }]) {
    const all = rulesOf({ rules });

    expect(all.some((rule) => allowsResource(rule, resourceAccess({ verb: "get", resource: "pods" })))).toBe(
      false,
    );
  }
});

describe("covering a rule", () => {
  const held: PolicyRule[] = [
    on(["get", "list"], "pods", "pods/status"),
    on(["watch"], "pods"),
    on(["update"], "*/status"),
    { ...on(["get"], "secrets"), resourceNames: ["a", "b"] },
    { verbs: ["get"], nonResourceURLs: ["/api/*"] },
  ];

  for (const [what, rule, covered] of [
    ["several may share it", on(["get", "list", "watch"], "pods"), true],
    ["one verb too many", on(["get", "delete"], "pods"), false],
    ["one resource too many", on(["get"], "pods", "nodes"), false],
    ["a star is more than any list", on(["*"], "pods"), false],
    ["a subresource of all", on(["update"], "nodes/status"), true],
    ["names that are held", { ...on(["get"], "secrets"), resourceNames: ["b"] }, true],
    ["a name that is not", { ...on(["get"], "secrets"), resourceNames: ["b", "c"] }, false],
    ["all names instead of some", on(["get"], "secrets"), false],
    ["a narrower path", { verbs: ["get"], nonResourceURLs: ["/api/v1/*"] }, true],
    ["a wider path", { verbs: ["get"], nonResourceURLs: ["/*"] }, false],
    ["nothing at all", { verbs: [] }, true],
  ] as const) {
    test(`${what}: ${covered ? "yes" : "no"}`, () => {
      expect(coversRule(held, rule)).toBe(covered);
    });
  }
});

describe("aggregated roles", () => {
  const role = (name: string, labels: Record<string, string>, fields: object) => ({
    metadata: { name, labels },
    ...fields,
  });
  const collects = (label: string) => ({
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: "true" } }] },
  });

  test("collect through others, each rule once, and a circle ends", () => {
    const roles = [
      role("a", { c: "true" }, collects("a")),
      role("b", { a: "true" }, collects("b")),
      role("c", { b: "true" }, collects("c")),
      role("x", { b: "true" }, { rules: [on(["get"], "pods")] }),
      role("y", { a: "true" }, { rules: [on(["get"], "pods"), on(["list"], "pods")] }),
      role("z", {}, { rules: [on(["*"], "*")] }),
    ];

    expect(effectiveRules(roles[0]!, () => roles)).toEqual([on(["get"], "pods"), on(["list"], "pods")]);
  });

  test("show nothing of their own, and nothing for a selector that cannot be read", () => {
    const own = {
      rules: [on(["*"], "*")],
      aggregationRule: { clusterRoleSelectors: [null, 3, { matchExpressions: 1 }, { matchLabels: 7 }] },
    };
    const roles = [role("a", {}, own), role("z", {}, { rules: [on(["*"], "*")] })];

    expect(effectiveRules(roles[0]!, () => roles)).toEqual([]);
  });
});

function on(verbs: readonly string[], ...resources: string[]): PolicyRule {
  return { verbs, apiGroups: [""], resources };
}
