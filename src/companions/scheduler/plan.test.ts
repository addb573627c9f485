import type { PodSpec } from "kubernetes-types/core/v1.js";
import { describe, expect, test } from "vitest";
import { pod, requiring, verdict, type NodeRow } from "./view.testing.ts";

const none = (why: string) => `0/1 nodes are available: 1 ${why}.`;

describe("whose business a pod is", () => {
  for (const [what, spec, more, expected] of [
    ["a pod without a node", {}, {}, "-> a"],
    ["a pod with a node", { nodeName: "a" }, {}, "ignore"],
    ["a pod of another scheduler", { schedulerName: "volcano" }, {}, "ignore"],
    ["a pod that is going", {}, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }, "ignore"],
    ["a pod that has failed", {}, { status: { phase: "Failed" } }, "ignore"],
    ["a gated pod", { schedulingGates: [{ name: "quota" }] }, {}, "gated"],
  ] as const) {
    test(`${what}: ${expected}`, () => {
      expect(verdict(spec as Partial<PodSpec>, {}, more)).toBe(expected);
    });
  }

  test("a cluster without nodes says so", () => {
    expect(verdict({}, { nodes: {} })).toBe("no nodes available to schedule pods");
  });

  test("what cannot be honoured is said, not ignored", () => {
    const term = {
      topologyKey: "zone",
      labelSelector: {},
      namespaceSelector: { matchLabels: { team: "a" } },
    };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };

    expect(verdict({ affinity })).toContain("namespaceSelector of pod affinity is not supported");
    expect(verdict({ resourceClaims: [{ name: "gpu" }] })).toContain("resourceClaims are not supported");
  });
});

describe("nodes that do not want a pod", () => {
  const tainted = (effect: string, value?: string): NodeRow => ({
    taints: [{ key: "team", effect, ...(value !== undefined && { value }) }],
  });
  const untolerated = (taint: string) => none(`node(s) had untolerated taint {${taint}}`);
  const exists = [{ operator: "Exists" }];

  for (const [what, row, tolerations, expected] of [
    ["cordoned", { unschedulable: true }, [], none("node(s) were unschedulable")],
    [
      "cordoned, tolerated",
      { unschedulable: true },
      [{ key: "node.kubernetes.io/unschedulable", operator: "Exists" }],
      "-> a",
    ],
    ["not ready", { ready: "False" }, [], untolerated("node.kubernetes.io/not-ready: ")],
    ["never heard of", { ready: "missing" }, [], untolerated("node.kubernetes.io/not-ready: ")],
    ["silent", { ready: "Unknown" }, [], untolerated("node.kubernetes.io/unreachable: ")],
    ["not ready, all tolerated", { ready: "False" }, exists, "-> a"],
    [
      // What the server gives every pod: it may stay on such a node for a while, not come to it.
      "not ready, only its eviction tolerated",
      { ready: "False" },
      [{ key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" }],
      untolerated("node.kubernetes.io/not-ready: "),
    ],
    ["NoSchedule", tainted("NoSchedule", "db"), [], untolerated("team: db")],
    ["NoExecute", tainted("NoExecute", "db"), [], untolerated("team: db")],
    ["PreferNoSchedule", tainted("PreferNoSchedule", "db"), [], "-> a"],
    ["equal value", tainted("NoSchedule", "db"), [{ key: "team", value: "db" }], "-> a"],
    ["other value", tainted("NoSchedule", "db"), [{ key: "team", value: "web" }], untolerated("team: db")],
    ["any value", tainted("NoSchedule", "db"), [{ key: "team", operator: "Exists" }], "-> a"],
    [
      "other effect",
      tainted("NoSchedule", "db"),
      [{ key: "team", operator: "Exists", effect: "NoExecute" }],
      untolerated("team: db"),
    ],
    ["no value, equal", tainted("NoSchedule"), [{ key: "team", operator: "Equal" }], "-> a"],
  ] as const) {
    test(`${what}: ${expected}`, () => {
      expect(verdict({ tolerations: tolerations.map((one) => ({ ...one })) }, { nodes: { a: row } })).toBe(
        expected,
      );
    });
  }
});

describe("nodes that a pod does not want", () => {
  const labels = { zone: "z1", cores: "16", disk: "" };
  const mismatch = none("node(s) didn't match Pod's node affinity/selector");
  const expression = (key: string, operator: string, ...values: string[]) => ({ key, operator, values });

  for (const [what, expressions, matches] of [
    ["In", [expression("zone", "In", "z1", "z2")], true],
    ["In, another", [expression("zone", "In", "z2")], false],
    ["In, absent", [expression("gone", "In", "x")], false],
    ["NotIn", [expression("zone", "NotIn", "z2")], true],
    ["NotIn, absent", [expression("gone", "NotIn", "x")], true],
    ["NotIn, that one", [expression("zone", "NotIn", "z1")], false],
    ["Exists", [expression("disk", "Exists")], true],
    ["Exists, absent", [expression("gone", "Exists")], false],
    ["Exists, of every object", [expression("constructor", "Exists")], false],
    ["DoesNotExist", [expression("gone", "DoesNotExist")], true],
    ["DoesNotExist, there", [expression("disk", "DoesNotExist")], false],
    ["Gt", [expression("cores", "Gt", "8")], true],
    ["Gt, equal", [expression("cores", "Gt", "16")], false],
    ["Gt, no number", [expression("zone", "Gt", "8")], false],
    ["Lt", [expression("cores", "Lt", "17")], true],
    ["an operator of the future", [expression("zone", "Like", "z*")], false],
    ["all of a term have to hold", [expression("zone", "In", "z1"), expression("gone", "Exists")], false],
    ["an empty term", [], false],
  ] as const) {
    test(`affinity ${what}: ${matches ? "fits" : "does not fit"}`, () => {
      const terms = [{ matchExpressions: expressions.map((one) => ({ ...one, values: [...one.values] })) }];
      const required = { nodeSelectorTerms: terms };
      const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };

      expect(verdict({ affinity }, { nodes: { a: { labels } } })).toBe(matches ? "-> a" : mismatch);
    });
  }

  test("one of several terms is enough, and a node may be meant by its name", () => {
    const nodeSelectorTerms = [
      { matchExpressions: [expression("gone", "Exists")] },
      { matchFields: [expression("metadata.name", "In", "b")] },
    ];
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };

    expect(verdict({ affinity: { nodeAffinity: required } }, { nodes: { a: {}, b: {} } })).toBe("-> b");
  });

  test("a node selector is met by equal labels only", () => {
    const nodes = { a: {}, b: { labels: { zone: "z2" } }, c: { labels: { zone: "z1" } } };

    expect(verdict({ nodeSelector: { zone: "z1" } }, { nodes })).toBe("-> c");
    expect(verdict({ nodeSelector: { zone: "z3" } }, { nodes })).toBe(
      "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
    );
  });
});

describe("room", () => {
  const asking = (requests: Record<string, string>): Partial<PodSpec> => ({
    containers: [{ name: "app", resources: { requests } }],
  });
  const node = (allocatable: Record<string, string>, ...there: Partial<PodSpec>[]) => ({
    nodes: { a: { allocatable } },
    pods: there.map((spec, index) => pod(`other-${index}`, { ...spec, nodeName: "a" })),
  });

  for (const [what, spec, table, expected] of [
    ["fits exactly", asking({ cpu: "500m" }), node({ cpu: "1" }, asking({ cpu: "0.5" })), "-> a"],
    [
      "a hair too much",
      asking({ cpu: "501m" }),
      node({ cpu: "1" }, asking({ cpu: "0.5" })),
      none("Insufficient cpu"),
    ],
    [
      "of two, both are named",
      asking({ cpu: "2", memory: "2Gi" }),
      node({ cpu: "1", memory: "1Gi" }),
      "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
    ],
    ["a node that states nothing", asking({ cpu: "64" }), node({}), "-> a"],
    [
      "a resource nobody has",
      asking({ "example.com/gpu": "1" }),
      node({}),
      none("Insufficient example.com/gpu"),
    ],
    ["the last place", {}, node({ pods: "2" }, {}), "-> a"],
    ["no place", {}, node({ pods: "1" }, {}), none("Too many pods")],
    [
      "a limit counts where nothing is requested",
      { containers: [{ name: "app", resources: { limits: { cpu: "2" } } }] },
      node({ cpu: "1" }),
      none("Insufficient cpu"),
    ],
    [
      "an init container needs its own only while it runs",
      { ...asking({ cpu: "600m" }), initContainers: [initContainer("900m")] },
      node({ cpu: "1" }),
      "-> a",
    ],
    [
      "a sidecar stays",
      { ...asking({ cpu: "600m" }), initContainers: [{ ...initContainer("500m"), restartPolicy: "Always" }] },
      node({ cpu: "1" }),
      none("Insufficient cpu"),
    ],
  ] as const) {
    test(`${what}: ${expected}`, () => {
      expect(verdict(spec as Partial<PodSpec>, table)).toBe(expected);
    });
  }

  function initContainer(cpu: string) {
    return { name: "first", resources: { requests: { cpu } } };
  }
});

describe("the best of several", () => {
  test("the one with the fewest pods, then by name", () => {
    const there = [pod("x", { nodeName: "a" }), pod("y", { nodeName: "b" })];

    expect(verdict({}, { nodes: { c: {}, a: {}, b: {} }, pods: there })).toBe("-> c");
    expect(verdict({}, { nodes: { c: {}, a: {}, b: {} } })).toBe("-> a");
  });

  test("preferences count before room, the heavier ones more", () => {
    const preferred = [
      { weight: 10, preference: requiring("zone", ["z1"]).nodeSelectorTerms[0] ?? {} },
      { weight: 20, preference: requiring("zone", ["z2"]).nodeSelectorTerms[0] ?? {} },
    ];
    const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } };
    const nodes = { a: {}, b: { labels: { zone: "z1" } }, c: { labels: { zone: "z2" } } };

    expect(verdict({ affinity }, { nodes, pods: [pod("x", { nodeName: "c" })] })).toBe("-> c");
  });

  test("a node that would rather not comes last, but it comes", () => {
    const taints = [{ key: "busy", effect: "PreferNoSchedule" }];

    expect(verdict({}, { nodes: { a: { taints }, b: {} }, pods: [pod("x", { nodeName: "b" })] })).toBe(
      "-> b",
    );
    expect(verdict({}, { nodes: { a: { taints } } })).toBe("-> a");
  });
});

describe("pods that want to be near, or apart", () => {
  const HOST = "kubernetes.io/hostname";
  const zones = {
    a: { labels: { zone: "z1" } },
    b: { labels: { zone: "z1" } },
    c: { labels: { zone: "z2" } },
  };
  const term = (app: string, topologyKey = HOST) => ({
    topologyKey,
    labelSelector: { matchLabels: { app } },
  });
  const near = (...terms: ReturnType<typeof term>[]) => ({
    affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
  });
  const apart = (...terms: ReturnType<typeof term>[]) => ({
    affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
  });
  const labelled = (app: string) => ({ metadata: { labels: { app } } });
  const db = (nodeName: string, spec: Partial<PodSpec> = {}) =>
    pod(`db-${nodeName}`, { nodeName, ...spec }, labelled("db"));

  for (const [what, spec, there, own, expected] of [
    ["apart from a pod on the same node", apart(term("db")), [db("a")], "web", "-> b"],
    ["apart by zone", apart(term("db", "zone")), [db("a")], "web", "-> c"],
    [
      "nowhere left",
      apart(term("db", "zone")),
      [db("a"), db("c")],
      "web",
      "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.",
    ],
    ["a label that no node has keeps nobody apart", apart(term("db", "rack")), [db("a")], "web", "-> b"],
    ["kept away by one that is there", {}, [db("a", apart(term("web", "zone")))], "web", "-> c"],
    ["near", near(term("db")), [db("c")], "web", "-> c"],
    ["near by zone", near(term("db", "zone")), [db("b")], "web", "-> a"],
    [
      "nobody to be near to",
      near(term("db")),
      [],
      "web",
      "0/3 nodes are available: 3 node(s) didn't match pod affinity rules.",
    ],
    ["the first of a group begins anywhere", near(term("db")), [], "db", "-> a"],
  ] as const) {
    test(`${what}: ${expected}`, () => {
      expect(verdict(spec as Partial<PodSpec>, { nodes: zones, pods: [...there] }, labelled(own))).toBe(
        expected,
      );
    });
  }

  test("pods of other namespaces do not count unless they are named", () => {
    const other = { ...db("a"), metadata: { ...db("a").metadata, namespace: "shop" } };
    const named = { ...term("db"), namespaces: ["shop"] };
    const all = { ...term("db"), namespaceSelector: {} };

    expect(verdict(apart(term("db")), { nodes: zones, pods: [other] })).toBe("-> b");
    expect(verdict(apart(term("db")), { nodes: { a: {} }, pods: [other] })).toBe("-> a");
    expect(verdict(apart(named), { nodes: { a: {} }, pods: [other] })).toContain("anti-affinity");
    expect(verdict(apart(all), { nodes: { a: {} }, pods: [other] })).toContain("anti-affinity");
  });

  const spread = (maxSkew: number, topologyKey: string, whenUnsatisfiable = "DoNotSchedule") => ({
    topologySpreadConstraints: [
      { maxSkew, topologyKey, whenUnsatisfiable, labelSelector: { matchLabels: { app: "db" } } },
    ],
  });

  for (const [what, spec, there, expected] of [
    ["the emptier zone", spread(1, "zone"), [db("a")], "-> c"],
    ["even", spread(1, "zone"), [db("a"), db("c")], "-> b"],
    ["a skew of two", spread(2, "zone"), [db("a")], "-> b"],
    ["a wish is no rule", spread(1, "zone", "ScheduleAnyway"), [db("a")], "-> b"],
    [
      "no node has the label",
      spread(1, "rack"),
      [],
      "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints (missing required label).",
    ],
    [
      // The zone that is emptier cannot take it, and counts all the same.
      "the emptier zone is cordoned",
      { ...spread(1, "zone"), tolerations: [] },
      [db("a")],
      "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints.",
    ],
  ] as const) {
    test(`spread, ${what}: ${expected}`, () => {
      const nodes = what.includes("cordoned") ? { ...zones, c: { ...zones.c, unschedulable: true } } : zones;

      expect(verdict(spec as Partial<PodSpec>, { nodes, pods: [...there] }, labelled("db"))).toBe(expected);
    });
  }
});
