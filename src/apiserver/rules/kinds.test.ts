import { describe, expect, test } from "vitest";
import type { Kind } from "../kinds.ts";
import { toCoreEvent, toNewEvent } from "./event-spelling.ts";
import { changing, creating, given, kindOf, NOW, stored } from "./given.testing.ts";
import { finalizeNamespace } from "./namespace.ts";
import { rulesFor } from "./rules.ts";

/** The kinds with few rules, one table a kind. */
function table(
  kind: string,
  rows: readonly (readonly [what: string, members: object, causes: readonly string[]])[],
) {
  describe(kind, () => {
    for (const [what, members, causes] of rows) {
      test(`${what}: ${causes.join() || "good"}`, () => {
        expect(creating(kind, members as Record<string, unknown>)).toEqual(causes);
      });
    }
  });
}

const MEGABYTE = 1_024 * 1_024;

table("ConfigMap", [
  ["a megabyte", { data: { k: "x".repeat(MEGABYTE) } }, []],
  [
    "one byte more, in two places",
    { data: { k: "x".repeat(MEGABYTE) }, binaryData: { b: "AA==" } },
    ["TooLong []"],
  ],
  ["one key in two places", { data: { k: "v" }, binaryData: { k: "AA==" } }, ["Invalid data[k]"]],
  ["a key that leads up", { data: { "..": "v" } }, ["Invalid data[..]"]],
  ["a key that looks so", { data: { "..a": "v" } }, ["Invalid data[..a]"]],
  ["a key of 254", { data: { ["k".repeat(254)]: "v" } }, [`Invalid data[${"k".repeat(254)}]`]],
]);

table("Secret", [
  ["nothing in it", {}, []],
  [
    "a megabyte of bytes, which is more of base64",
    { data: { k: Buffer.alloc(MEGABYTE).toString("base64") } },
    [],
  ],
  ["one byte more", { data: { k: Buffer.alloc(MEGABYTE + 1).toString("base64") } }, ["TooLong data"]],
  [
    "a token of nobody",
    { type: "kubernetes.io/service-account-token" },
    ["Required metadata.annotations[kubernetes.io/service-account.name]"],
  ],
  [
    "a login without name and word",
    { type: "kubernetes.io/basic-auth" },
    ["Required data[username]", "Required data[password]"],
  ],
  ["a login with a word", { type: "kubernetes.io/basic-auth", stringData: { password: "p" } }, []],
  ["a key without key", { type: "kubernetes.io/ssh-auth" }, ["Required data[ssh-privatekey]"]],
  ["a type that every object of JavaScript has a member for", { type: "constructor" }, []],
  ["a type of one's own", { type: "example.com/any" }, []],
]);

table("StorageClass", [
  ["512 parameters", { provisioner: "p", parameters: numbered(512) }, []],
  ["513", { provisioner: "p", parameters: numbered(513) }, ["TooLong parameters"]],
  ["a name in upper case", { provisioner: "Example.COM/Disk" }, []],
  [
    "a zone twice",
    {
      provisioner: "p",
      allowedTopologies: [
        {
          matchLabelExpressions: [
            { key: "z", values: ["a", "a"] },
            { key: "z", values: ["b"] },
          ],
        },
      ],
    },
    [
      "Duplicate allowedTopologies[0].matchLabelExpressions[0].values[1]",
      "Duplicate allowedTopologies[0].matchLabelExpressions[1].key",
    ],
  ],
]);

table("VolumeAttributesClass", [
  ["nothing in it", {}, ["Required driverName", "Required parameters"]],
  ["something", { driverName: "d.io", parameters: { iops: "1" } }, []],
]);

table("CSIDriver", [
  ["the shortest period", { spec: { nodeAllocatableUpdatePeriodSeconds: 10 } }, []],
  [
    "a shorter one",
    { spec: { nodeAllocatableUpdatePeriodSeconds: 9 } },
    ["Invalid spec.nodeAllocatableUpdatePeriodSeconds"],
  ],
  ["a token for 136 years", { spec: { tokenRequests: [{ audience: "a", expirationSeconds: 2 ** 32 }] } }, []],
  [
    "for a second more",
    { spec: { tokenRequests: [{ audience: "a", expirationSeconds: 2 ** 32 + 1 }] } },
    ["Invalid spec.tokenRequests[0].expirationSeconds"],
  ],
]);

table("Node", [
  ["a taint of no effect", { spec: { taints: [{ key: "a" }] } }, ["Required metadata.taints[0].effect"]],
  [
    "a taint twice",
    {
      spec: {
        taints: [
          { key: "a", effect: "NoExecute" },
          { key: "a", effect: "NoExecute" },
        ],
      },
    },
    ["Duplicate metadata.taints[1]"],
  ],
  [
    "less than nothing",
    { status: { capacity: { cpu: "-1" }, allocatable: {} } },
    ["Invalid status.capacity.cpu"],
  ],
]);

table("VolumeAttachment", [
  [
    "a volume of an empty name",
    { spec: { attacher: "d.io", nodeName: "n", source: { persistentVolumeName: "" } } },
    ["Required spec.source.persistentVolumeName"],
  ],
]);

table("CSIStorageCapacity", [
  [
    "a topology that cannot match",
    { storageClassName: "c", nodeTopology: { matchExpressions: [{ key: "a", operator: "Near" }] } },
    ["Invalid nodeTopology.matchExpressions[0].operator"],
  ],
  [
    "values where none belong",
    {
      storageClassName: "c",
      nodeTopology: { matchExpressions: [{ key: "a", operator: "Exists", values: ["b"] }] },
    },
    ["Forbidden nodeTopology.matchExpressions[0].values"],
  ],
]);

const CLUSTER_ADMIN = { kind: "ClusterRole", name: "cluster-admin" };
table("RoleBinding", [
  ["groups are filled in", { roleRef: CLUSTER_ADMIN, subjects: [{ kind: "User", name: "u" }] }, []],
  ["to nothing", {}, ["NotSupported roleRef.kind", "Required roleRef.name"]],
  [
    "an account without a namespace, which is one of the binding's own",
    { roleRef: CLUSTER_ADMIN, subjects: [{ kind: "ServiceAccount", name: "a" }] },
    [],
  ],
  [
    "an account that cannot be",
    { roleRef: CLUSTER_ADMIN, subjects: [{ kind: "ServiceAccount", name: "A_b" }] },
    ["Invalid subjects[0].name"],
  ],
  [
    "an account of a group",
    { roleRef: CLUSTER_ADMIN, subjects: [{ kind: "ServiceAccount", name: "a", apiGroup: "g" }] },
    ["NotSupported subjects[0].apiGroup"],
  ],
  [
    "a subject of no kind",
    { roleRef: CLUSTER_ADMIN, subjects: [{ kind: "Dog", name: "d" }] },
    ["NotSupported subjects[0].kind"],
  ],
  ["a role that no path leads to", { roleRef: { kind: "Role", name: "a/b" } }, ["Invalid roleRef.name"]],
]);

table("ClusterRoleBinding", [
  [
    "an account of nowhere",
    { roleRef: CLUSTER_ADMIN, subjects: [{ kind: "ServiceAccount", name: "a" }] },
    ["Required subjects[0].namespace"],
  ],
  [
    "an account of somewhere",
    { roleRef: CLUSTER_ADMIN, subjects: [{ kind: "ServiceAccount", name: "a", namespace: "t" }] },
    [],
  ],
  ["to a role of one namespace", { roleRef: { kind: "Role", name: "r" } }, ["NotSupported roleRef.kind"]],
]);

table("Role", [
  [
    "nothing to do with nothing",
    { rules: [{}] },
    ["Required rules[0].verbs", "Required rules[0].apiGroups", "Required rules[0].resources"],
  ],
  [
    "paths, which lie in no namespace",
    { rules: [{ verbs: ["get"], nonResourceURLs: ["/healthz"] }] },
    ["Invalid rules[0].nonResourceURLs"],
  ],
]);

table("ClusterRole", [
  ["paths", { rules: [{ verbs: ["get"], nonResourceURLs: ["/healthz"] }] }, []],
  [
    "paths and objects at once",
    { rules: [{ verbs: ["get"], nonResourceURLs: ["/healthz"], resourceNames: ["a"] }] },
    ["Invalid rules[0].nonResourceURLs"],
  ],
  ["made of no other roles", { aggregationRule: {} }, ["Required aggregationRule.clusterRoleSelectors"]],
  [
    "made of roles that cannot be told",
    { aggregationRule: { clusterRoleSelectors: [{ matchExpressions: [{ key: "a", operator: "Near" }] }] } },
    ["Invalid aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator"],
  ],
]);

describe("changes", () => {
  const spec = { attacher: "d.io", nodeName: "n", source: { persistentVolumeName: "p" } };

  test("a RoleBinding is bound to its role", () => {
    const old = stored("RoleBinding", { roleRef: CLUSTER_ADMIN });

    expect(
      changing("RoleBinding", old, given("RoleBinding", { roleRef: { ...CLUSTER_ADMIN, name: "view" } })),
    ).toEqual(["Invalid roleRef"]);
  });

  test("a VolumeAttributesClass stays what it is", () => {
    const old = stored("VolumeAttributesClass", { driverName: "d.io", parameters: { a: "1" } });
    const wanted = given("VolumeAttributesClass", { driverName: "e.io", parameters: { a: "2" } });

    expect(changing("VolumeAttributesClass", old, wanted)).toEqual([
      "Forbidden driverName",
      "Forbidden parameters",
    ]);
  });

  test("errors of an attachment have a length and a code", () => {
    const rules = rulesFor(kindOf("VolumeAttachment"));
    const old = stored("VolumeAttachment", { spec });
    const causes = rules.validateStatusUpdate(
      {
        ...old,
        status: {
          detachError: { message: "x".repeat(1_025), errorCode: -1 },
          attachmentMetadata: { k: "x".repeat(256 * 1_024) },
        },
      },
      old,
    );

    expect(causes.map(({ field }) => field)).toEqual([
      "status.attachmentMetadata",
      "status.detachError.message",
      "status.detachError.errorCode",
    ]);
  });

  test("a node registers with its status, and older agents' one CIDR becomes a list", () => {
    const node = stored("Node", { spec: { podCIDR: "10.0.0.0/24" }, status: { capacity: { cpu: "4" } } });

    expect(node).toMatchObject({
      spec: { podCIDR: "10.0.0.0/24", podCIDRs: ["10.0.0.0/24"] },
      status: { capacity: { cpu: "4" }, allocatable: { cpu: "4" } },
    });
  });
});

describe("namespaces", () => {
  const rules = rulesFor(kindOf("Namespace"));
  const old = stored("Namespace", {}, { name: "n" });

  test("keep their finalizer through ordinary writes, and lose it through /finalize", () => {
    const wanted = given("Namespace", { spec: { finalizers: ["example.com/mine"] } }, { name: "n" });

    expect(rules.prepareUpdate(wanted, old, { now: NOW })["spec"]).toEqual({ finalizers: ["kubernetes"] });
    expect(finalizeNamespace(old, given("Namespace", {}, { name: "n" }))).toMatchObject({
      spec: {},
      status: { phase: "Active" },
    });
    expect(finalizeNamespace(old, wanted)["spec"]).toEqual({ finalizers: ["example.com/mine"] });
  });

  test("a finalized one does not get its finalizer back", () => {
    const finalized = finalizeNamespace(old, given("Namespace", {}, { name: "n" }));

    expect(rules.prepareUpdate(rules.applyDefaults(finalized), finalized, { now: NOW })["spec"]).toEqual({});
  });

  test("are active until they are deleted, whatever a status says", () => {
    const causes = rules.validateStatusUpdate({ ...old, status: { phase: "Terminating" } }, old);

    expect(causes).toMatchObject([{ reason: "FieldValueInvalid", field: "status.Phase" }]);
  });
});

describe("events", () => {
  const event = {
    metadata: { name: "e", namespace: "t" },
    regarding: { kind: "Pod", namespace: "t", name: "p" },
    note: "text",
    reason: "Tested",
    action: "Test",
    type: "Normal",
    eventTime: "2026-01-01T00:00:00.000000Z",
    reportingController: "x.io/y",
    reportingInstance: "y-1",
  };
  const newer: Kind = { ...kindOf("Event"), group: "events.k8s.io" };
  const rules = rulesFor(newer);

  test("are one object under two spellings, and back again", () => {
    const core = toCoreEvent(event);

    expect(core).toMatchObject({
      apiVersion: "v1",
      involvedObject: event.regarding,
      message: "text",
      reportingComponent: "x.io/y",
    });
    expect(core).not.toHaveProperty("note");
    expect(toNewEvent(core)).toEqual({ ...event, apiVersion: "events.k8s.io/v1" });
  });

  test("in the new group use nothing that is deprecated", () => {
    const old = {
      deprecatedCount: 2,
      deprecatedFirstTimestamp: "2026-01-01T00:00:00Z",
      deprecatedSource: { component: "c" },
    };

    expect(rules.validateCreate(toCoreEvent(event))).toEqual([]);
    expect(rules.validateCreate(toCoreEvent({ ...event, ...old })).map(({ field }) => field)).toEqual([
      "firstTimestamp",
      "count",
      "source",
    ]);
  });

  test("in the new group change only by growing a series", () => {
    const stored = toCoreEvent(event);
    const series = { count: 2, lastObservedTime: "2026-01-01T00:00:01.000000Z" };
    const fieldsOf = (change: object) =>
      rules.validateUpdate(toCoreEvent({ ...event, ...change }), stored).map(({ field }) => field);

    expect(fieldsOf({ series })).toEqual([]);
    expect(fieldsOf({ series: { count: 1 } })).toEqual(["series.count", "series.lastObservedTime"]);
    expect(fieldsOf({ note: "other", reportingController: "z.io/z" })).toEqual([
      "reportingController",
      "message",
    ]);
  });

  test("through core/v1 are changed at will", () => {
    const core = toCoreEvent(event);

    expect(changing("Event", core, { ...core, message: "other", count: 5 })).toEqual([]);
  });

  test("of something in no namespace lie in `default`, newer ones also in kube-system", () => {
    const about = (namespace: string, eventTime?: string) =>
      creating(
        "Event",
        { ...toCoreEvent(event), involvedObject: { kind: "Node" }, eventTime },
        { namespace },
      );

    expect(about("default")).toEqual([]);
    expect(about("kube-system", event.eventTime)).toEqual([]);
    expect(about("kube-system")).toEqual(["Invalid involvedObject.namespace"]);
    expect(about("t", event.eventTime)).toEqual(["Invalid involvedObject.namespace"]);
  });

  test("with a time of their own say who saw what", () => {
    const fields = creating("Event", {
      involvedObject: { namespace: "t" },
      eventTime: event.eventTime,
      message: "x".repeat(1_025),
    });

    expect(fields).toEqual([
      "Required reportingComponent",
      "Invalid reportingComponent", // it is empty
      "Invalid reportingComponent", // and no qualified name
      "Required reportingInstance",
      "Required action",
      "Required reason",
      "Invalid message",
    ]);
  });
});

function numbered(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, "v"]));
}
