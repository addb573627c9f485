import { describe, expect, test } from "vitest";
import { changing, creating, given, kindOf, stored } from "./given.testing.ts";
import { rulesFor } from "./rules.ts";

describe("names", () => {
  for (const [kind, name, causes] of [
    ["ConfigMap", "a.b-c", []],
    ["ConfigMap", "a".repeat(253), []],
    ["ConfigMap", "a".repeat(254), ["Invalid metadata.name"]],
    ["ConfigMap", "-a", ["Invalid metadata.name"]],
    ["ConfigMap", "", ["Required metadata.name"]],
    ["Namespace", "a-b", []],
    ["Namespace", "a.b", ["Invalid metadata.name"]],
    ["Namespace", "a".repeat(64), ["Invalid metadata.name", "Invalid metadata.labels"]], // its name is a label too
    ["Role", "system:Controller", []], // a path segment is all a role needs to be
    ["Role", "a%b", ["Invalid metadata.name"]],
    ["Role", "..", ["Invalid metadata.name"]],
    ["Event", "Web_1.17a", []], // recorders named events freely before there was a rule
  ] as const) {
    const shown = name.length > 20 ? `${name.length} letters` : JSON.stringify(name);
    test(`${kind} ${shown}: ${causes.join() || "good"}`, () => {
      const members = kind === "Event" ? { involvedObject: { namespace: "t" } } : {};

      expect(creating(kind, members, { name })).toEqual(causes);
    });
  }

  test("a prefix for generated names may end in a dash, where a name may not", () => {
    expect(creating("ConfigMap", {}, { generateName: "a-" })).toEqual([]);
    expect(creating("ConfigMap", {}, { generateName: "A-" })).toEqual(["Invalid metadata.generateName"]);
  });

  test("a cluster-scoped object lies in no namespace, a namespaced one in one that could exist", () => {
    expect(creating("StorageClass", { provisioner: "p" }, { namespace: "t" })).toEqual([
      "Forbidden metadata.namespace",
    ]);
    expect(creating("ConfigMap", {}, { namespace: "T" })).toEqual(["Invalid metadata.namespace"]);
  });
});

describe("labels, annotations, finalizers, owners", () => {
  for (const [what, metadata, causes] of [
    ["a prefixed label", { labels: { "example.com/a_B.c": "V-1" } }, []],
    ["an empty value", { labels: { a: "" } }, []],
    ["an empty prefix", { labels: { "/a": "v" } }, ["Invalid metadata.labels"]],
    ["two slashes", { labels: { "a/b/c": "v" } }, ["Invalid metadata.labels"]],
    ["a value of 64", { labels: { a: "v".repeat(64) } }, ["Invalid metadata.labels"]],
    ["annotations may have keys in upper case", { annotations: { "Example.COM/Key": "any text: ä" } }, []],
    ["256 KiB of annotations", { annotations: { a: "x".repeat(256 * 1_024 - 1) } }, []],
    ["one byte more", { annotations: { a: "x".repeat(256 * 1_024) } }, ["TooLong metadata.annotations"]],
    ["standard finalizers", { finalizers: ["orphan", "kubernetes"] }, []],
    [
      "both kinds of propagation",
      { finalizers: ["orphan", "foregroundDeletion"] },
      ["Invalid metadata.finalizers"],
    ],
    [
      "an owner of which nothing is known",
      { ownerReferences: [{ apiVersion: "", kind: "", name: "", uid: "" }] },
      [
        "Invalid metadata.ownerReferences.apiVersion",
        "Invalid metadata.ownerReferences.kind",
        "Invalid metadata.ownerReferences.name",
        "Invalid metadata.ownerReferences.uid",
      ],
    ],
    [
      "an event, which is gone in an hour, as owner",
      { ownerReferences: [{ apiVersion: "v1", kind: "Event", name: "e", uid: "1" }] },
      ["Invalid metadata.ownerReferences"],
    ],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(creating("ConfigMap", {}, structuredClone(metadata) as object)).toEqual(causes);
      expect(
        changing(
          "ConfigMap",
          given("ConfigMap"),
          given("ConfigMap", {}, structuredClone(metadata) as object),
        ),
      ).toEqual(causes);
    });
  }
});

describe("updates", () => {
  test("an object that is being deleted lets go of finalizers but takes no new ones", () => {
    const deletionTimestamp = "2026-01-01T00:00:00Z";
    const old = given("ConfigMap", {}, { deletionTimestamp, finalizers: ["a.io/a", "a.io/b"] });

    const letsGo = changing(
      "ConfigMap",
      old,
      given("ConfigMap", {}, { deletionTimestamp, finalizers: ["a.io/a"] }),
    );
    const takes = changing(
      "ConfigMap",
      old,
      given("ConfigMap", {}, { deletionTimestamp, finalizers: ["a.io/c"] }),
    );

    expect(letsGo).toEqual([]);
    expect(takes).toEqual(["Forbidden metadata.finalizers"]);
  });

  test("the uid of an object never changes", () => {
    const old = given("ConfigMap", {}, { uid: "1" });

    expect(changing("ConfigMap", old, given("ConfigMap", {}, { uid: "2" }))).toEqual([
      "Invalid metadata.uid",
    ]);
  });

  test("/status takes the status and keeps the spec; the object itself does the reverse", () => {
    const rules = rulesFor(kindOf("VolumeSnapshot"));
    const old = { ...given("VolumeSnapshot"), spec: { a: 1 }, status: { b: 1 } };
    const wanted = { ...given("VolumeSnapshot"), spec: { a: 2 }, status: { b: 2 } };
    const moment = { now: new Date(0) };

    expect(rules.prepareUpdate(wanted, old, moment)).toMatchObject({ spec: { a: 2 }, status: { b: 1 } });
    expect(rules.prepareStatusUpdate(wanted, old, moment)).toMatchObject({
      spec: { a: 1 },
      status: { b: 2 },
    });
    expect(rules.prepareCreate(wanted, moment)).not.toHaveProperty("status");
  });

  test("a kind without /status keeps a field of that name", () => {
    const rules = rulesFor(kindOf("ConfigMap"));

    expect(rules.prepareCreate({ ...given("ConfigMap"), status: 1 }, { now: new Date(0) })).toHaveProperty(
      "status",
    );
  });

  test("what is wrong twice is said once", () => {
    const causes = creating("VolumeAttachment", {
      spec: { nodeName: "n", source: { persistentVolumeName: "p" } },
    });

    expect(causes).toEqual(["Required spec.attacher", "Invalid spec.attacher"]);
  });
});

test("a value of a megabyte is not sent back whole", () => {
  const rules = rulesFor(kindOf("ConfigMap"));

  const [cause] = rules.validateCreate(stored("ConfigMap", {}, { name: "x" }));
  const [long] = rules.validateCreate(given("ConfigMap", {}, { labels: { a: "x".repeat(2 ** 20) } }));

  expect(cause).toBeUndefined();
  expect(long?.message.length).toBeLessThan(1_200);
});
