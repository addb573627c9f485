import fc from "fast-check";
import { expect, test } from "vitest";
import { partialMetadata } from "./metadata.ts";

test("metadata is cut out of any object's text as parsing would find it", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (metadata, spec) => {
      const text = JSON.stringify({ kind: "Pod", apiVersion: "v1", metadata, spec });

      expect(JSON.parse(partialMetadata(text, "v1"))).toEqual({
        kind: "PartialObjectMetadata",
        apiVersion: "meta.k8s.io/v1",
        metadata: JSON.parse(JSON.stringify(metadata)) as object,
      });
    }),
  );
});

for (const [why, text] of [
  ["another order", '{"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1"}'],
  [
    "metadata after others",
    '{"kind":"Pod","apiVersion":"v1","spec":{"metadata":{"name":"b"}},"metadata":{"name":"a"}}',
  ],
  ["blanks", '{ "kind": "Pod", "apiVersion": "v1", "metadata": { "name": "a" } }'],
] as const) {
  test(`it is found in ${why} too`, () => {
    expect(JSON.parse(partialMetadata(text, "v1beta1"))).toEqual({
      kind: "PartialObjectMetadata",
      apiVersion: "meta.k8s.io/v1beta1",
      metadata: { name: "a" },
    });
  });
}

test("what has none has an empty one", () => {
  expect(partialMetadata('{"kind":"X"}', "v1")).toMatch(/"metadata":\{\}\}$/);
});
