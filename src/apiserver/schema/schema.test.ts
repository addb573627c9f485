import { describe, expect, test } from "vitest";
import { KINDS } from "../kinds.ts";
import { definitionOf, knownSchema, schemaOf, type ObjectSchema, type TypeSchema } from "./schema.ts";

const CORE = { group: "", version: "v1" };
const STORAGE = { group: "storage.k8s.io", version: "v1" };

describe("field table", () => {
  test("every served kind is in it, and so is everything that only arrives as a body", () => {
    const bodies = [
      { ...CORE, kind: "DeleteOptions" },
      { ...CORE, kind: "Binding" },
      { group: "policy", version: "v1", kind: "Eviction" },
      { group: "events.k8s.io", version: "v1", kind: "Event" },
      { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" },
      { group: "authentication.k8s.io", version: "v1", kind: "TokenReview" },
      { group: "authentication.k8s.io", version: "v1", kind: "SelfSubjectReview" },
      { group: "authorization.k8s.io", version: "v1", kind: "SubjectAccessReview" },
      { group: "authorization.k8s.io", version: "v1", kind: "SelfSubjectAccessReview" },
      { group: "authorization.k8s.io", version: "v1", kind: "SelfSubjectRulesReview" },
      { group: "authorization.k8s.io", version: "v1", kind: "LocalSubjectAccessReview" },
    ];

    const missing = [...KINDS, ...bodies].filter((kind) => schemaOf(kind) === undefined);

    expect(missing).toEqual([]);
    expect(schemaOf({ group: "apps", version: "v2", kind: "Deployment" })).toBeUndefined();
  });

  test("no definition contains itself, which bounds every recursion over it", () => {
    const depths = KINDS.map((kind) => depthOf(knownSchema(kind), []));

    expect(Math.max(...depths)).toBeGreaterThan(5);
    expect(Math.max(...depths)).toBeLessThan(20);
  });

  test("fields stand in the order of the Go types, kind and apiVersion first", () => {
    expect(fieldNames(knownSchema({ ...CORE, kind: "PersistentVolumeClaim" }))).toEqual([
      "kind",
      "apiVersion",
      "metadata",
      "spec",
      "status",
    ]);
    expect(fieldNames(definitionOf("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")).slice(0, 4)).toEqual([
      "name",
      "generateName",
      "namespace",
      "selfLink",
    ]);
  });

  test("a field that protobuf keeps in an inlined message is a pointer in its parent", () => {
    const volume = definitionOf("io.k8s.api.core.v1.Volume");

    expect(volume.field("emptyDir")).toMatchObject({ isPointer: true });
    expect(volume.protobuf.inlined.get(2)?.name).toBe("io.k8s.api.core.v1.VolumeSource");
  });

  test("server-side apply learns how lists and objects merge", () => {
    const pod = definitionOf("io.k8s.api.core.v1.PodSpec");
    const metadata = definitionOf("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    const container = definitionOf("io.k8s.api.core.v1.Container");
    const volume = definitionOf("io.k8s.api.core.v1.PersistentVolumeSpec");

    expect(pod.field("containers")).toMatchObject({ listType: "map", listMapKeys: ["name"] });
    expect(container.field("ports")).toMatchObject({ listMapKeys: ["containerPort", "protocol"] });
    expect(metadata.field("finalizers")).toMatchObject({ listType: "set", listMapKeys: [] });
    expect(pod.field("tolerations")).toMatchObject({ listType: "atomic" });
    expect(pod.field("nodeSelector")).toMatchObject({ mapType: "atomic" });
    expect(metadata.field("labels")).toMatchObject({ mapType: "granular" });
    // Atomic where it is defined, but not in this one place.
    expect(definitionOf("io.k8s.api.core.v1.ObjectReference").mapType).toBe("atomic");
    expect(volume.field("claimRef")).toMatchObject({ mapType: "granular" });
  });

  test("snapshot kinds are custom resources: no protobuf, and an explicit zero is kept", () => {
    const snapshot = knownSchema({ group: "snapshot.storage.k8s.io", version: "v1", kind: "VolumeSnapshot" });

    expect(snapshot).toMatchObject({ isCustom: true });
    expect(snapshot.protobuf.fields.size).toBe(0);
    expect(knownSchema({ ...STORAGE, kind: "CSINode" })).toMatchObject({ isCustom: false });
  });
});

function fieldNames({ fields }: ObjectSchema): string[] {
  return fields.map(({ name }) => name);
}

function depthOf(schema: ObjectSchema, above: readonly string[]): number {
  expect(above).not.toContain(schema.name);
  const inner = schema.fields.flatMap(({ type }) => objectIn(type));
  return 1 + Math.max(0, ...inner.map((next) => depthOf(next, [...above, schema.name])));
}

function objectIn(type: TypeSchema): ObjectSchema[] {
  if (type.kind === "object") return [type.schema];
  if (type.kind === "list") return objectIn(type.element);
  return type.kind === "map" ? objectIn(type.value) : [];
}
