import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonEqual } from "./json.ts";
import { applyMergePatch, createMergePatch } from "./merge-patch.ts";
import { anyObject, objectWithoutNulls } from "../fixtures/json-arbitraries.ts";

/** The table of RFC 7386, appendix A, as far as both sides are objects. */
for (const [document, patch, result] of [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [["a"], { a: 1 }, { a: 1 }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
] as const) {
  test(`${JSON.stringify(document)} with ${JSON.stringify(patch)} is ${JSON.stringify(result)}`, () => {
    expect(applyMergePatch(document, patch)).toStrictEqual(result);
  });
}

test("what does not change is shared, and a patch that changes nothing returns the document", () => {
  const document = { metadata: { name: "a" }, data: { k: "1" }, list: [1, 2] };

  const changed = applyMergePatch(document, { data: { k: "2" } });

  expect(changed["metadata"]).toBe(document.metadata);
  expect(applyMergePatch(document, { data: { k: "1" }, list: [1, 2], none: null })).toBe(document);
});

test("a key called __proto__ changes a member, never a prototype", () => {
  const patch: unknown = JSON.parse(
    '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  );

  const result = applyMergePatch({}, patch);

  expect(JSON.stringify(result)).toBe(JSON.stringify(patch));
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("what is not an object is no merge patch", () => {
  for (const patch of [null, [], "x", 1, undefined]) {
    expect(() => applyMergePatch({}, patch)).toThrow("BadRequest: error decoding patch");
  }
});

describe("creating", () => {
  for (const [before, after, patch] of [
    [{ a: 1 }, { a: 1 }, undefined],
    [{ a: 1 }, { a: 2 }, { a: 2 }],
    [{ a: 1, b: 2 }, { b: 2 }, { a: null }],
    [{ a: { b: 1, c: 2 } }, { a: { c: 3 } }, { a: { b: null, c: 3 } }],
    [{ a: { b: 1 } }, { a: {} }, { a: { b: null } }],
    [{ a: [1, 2] }, { a: [1] }, { a: [1] }],
    [{ a: 1 }, { a: { b: 1 } }, { a: { b: 1 } }],
    [{ a: 1 }, { a: null }, { a: null }], // null means absent
    [{}, { a: null }, undefined],
    [{ a: null }, { a: null }, undefined],
    [{ a: 1 }, { a: 1, b: undefined }, undefined],
  ] as const) {
    test(`${JSON.stringify(before)} to ${JSON.stringify(after)} takes ${JSON.stringify(patch)}`, () => {
      expect(createMergePatch(before, after)).toStrictEqual(patch);
    });
  }

  test("there is none between things that are no objects", () => {
    expect(() => createMergePatch([], {})).toThrow(
      "BadInput: a merge patch is made between two objects, not a list",
    );
  });
});

describe("for all objects", () => {
  test("the patch between two, applied to the first, gives the second", () => {
    fc.assert(
      fc.property(anyObject, objectWithoutNulls, (before, after) => {
        const result = applyMergePatch(before, createMergePatch(before, after) ?? {});

        // Not toEqual, which does not look at members called __proto__.
        expect(jsonEqual(result, after)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  test("applying a patch twice is applying it once", () => {
    fc.assert(
      fc.property(anyObject, anyObject, (document, patch) => {
        const once = applyMergePatch(document, patch);

        expect(applyMergePatch(once, patch)).toBe(once);
      }),
      { numRuns: 1_000 },
    );
  });

  test("neither document nor patch is changed", () => {
    fc.assert(
      fc.property(anyObject, anyObject, (document, patch) => {
        const [documentText, patchText] = [JSON.stringify(document), JSON.stringify(patch)];

        applyMergePatch(document, patch);

        expect([JSON.stringify(document), JSON.stringify(patch)]).toEqual([documentText, patchText]);
      }),
    );
  });
});
