import { describe, expect, test } from "vitest";
import { parseManifest } from "./manifest.ts";

const claim = (name: string, more = "") => `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: ${name}${more} }
`;

describe("a manifest", () => {
  test("is one step where every object is named once, in the order of the file", () => {
    const steps = parseManifest("f.yaml", `${claim("a")}---${claim("b")}---\n# nothing\n`);

    expect(steps.map((step) => step.map(({ label }) => label))).toEqual([
      ["persistentvolumeclaim/a", "persistentvolumeclaim/b"],
    ]);
  });

  test("begins a new step where it names an object again; another namespace is another object", () => {
    const text = [claim("a"), claim("a", ", namespace: other"), claim("a"), claim("b"), claim("a")].join(
      "---",
    );

    const steps = parseManifest("f.yaml", text);

    expect(steps.map((step) => step.map(({ object }) => object.metadata.namespace))).toEqual([
      ["default", "other"],
      ["default", "default"],
      ["default"],
    ]);
  });

  test("may be a List, and cluster-scoped objects get no namespace", () => {
    const text = `
kind: List
apiVersion: v1
items:
  - { apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: { name: fast }, provisioner: x }
`;

    const [[item] = []] = parseManifest("f.yaml", text);

    expect(item?.resource.plural).toBe("storageclasses");
    expect(item?.object.metadata).toEqual({ name: "fast" });
  });

  const BAD: readonly (readonly [string, string, RegExp])[] = [
    ["nothing in it", "# only words\n", /f\.yaml: holds no object/],
    ["broken YAML", "a: [1\n", /f\.yaml: line \d+, column \d+: is not valid YAML/],
    ["a list of words", "- a\n- b\n", /document 1 \(line 1\): is not an object/],
    ["no kind", `${claim("a")}---\napiVersion: v1\n`, /document 2 \(line \d+\): kind is missing/],
    ["no apiVersion", "kind: Pod\n", /apiVersion is missing/],
    ["no name", "apiVersion: v1\nkind: Pod\nmetadata: {}\n", /metadata\.name of this Pod is missing/],
    [
      "a kind nobody serves",
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: a }\n",
      /apps\/v1 Deployment is not served/,
    ],
    ["aliases without end", `a: &a [x]\nb: &b [${"*a,".repeat(60)}]\nc: [${"*b,".repeat(60)}]\n`, /alias/i],
  ];
  for (const [name, text, message] of BAD)
    test(`with ${name} is refused: ${String(message)}`, () => {
      expect(() => parseManifest("f.yaml", text)).toThrow(message);
    });
});
