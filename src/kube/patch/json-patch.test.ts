import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KubeError } from "../errors.ts";
import { anyObject } from "../fixtures/json-arbitraries.ts";
import { createJsonPatch } from "./create-json-patch.ts";
import { applyJsonPatch } from "./json-patch.ts";
import { jsonEqual, type Json } from "./json.ts";

function codeOf(act: () => unknown): string {
  try {
    act();
    return "none";
  } catch (error) {
    return error instanceof KubeError ? error.code : String(error);
  }
}

describe("one operation", () => {
  for (const [document, operation, result] of [
    [{ a: 1 }, { op: "add", path: "/b", value: 2 }, { a: 1, b: 2 }],
    [{ a: 1 }, { op: "add", path: "/a", value: null }, { a: null }],
    [{ l: [1, 3] }, { op: "add", path: "/l/1", value: 2 }, { l: [1, 2, 3] }],
    [{ l: [1] }, { op: "add", path: "/l/1", value: 2 }, { l: [1, 2] }],
    [{ l: [1] }, { op: "add", path: "/l/-", value: 2 }, { l: [1, 2] }],
    [{ a: { b: 1 } }, { op: "replace", path: "/a/b", value: 2 }, { a: { b: 2 } }],
    [{ a: {} }, { op: "replace", path: "/a/b", value: 2 }, { a: { b: 2 } }], // lenient: adds
    [{ a: 1 }, { op: "replace", path: "", value: { b: 2 } }, { b: 2 }],
    [{ l: [1, 2, 3] }, { op: "remove", path: "/l/1" }, { l: [1, 3] }],
    [{ a: null }, { op: "remove", path: "/a" }, {}],
    [{ l: [1, 2, 3] }, { op: "move", from: "/l/0", path: "/l/2" }, { l: [2, 3, 1] }],
    [{ a: { b: 1 } }, { op: "copy", from: "/a", path: "/a/c" }, { a: { b: 1, c: { b: 1 } } }],
    [{ "": { "a/b": { "~": 1 } } }, { op: "remove", path: "//a~1b/~0" }, { "": { "a/b": {} } }],
    [{ "~1": 1 }, { op: "remove", path: "/~01" }, {}],
    [{ a: 1 }, { op: "test", path: "", value: { a: 1 } }, { a: 1 }],
    [{ a: {} }, { op: "test", path: "/a/b", value: null }, { a: {} }], // lenient: absent is null
    [{ a: {} }, { op: "test", path: "/a/b" }, { a: {} }],
    [{ a: null }, { op: "test", path: "/a", value: null }, { a: null }],
  ] as const) {
    test(`${JSON.stringify(operation)} on ${JSON.stringify(document)}`, () => {
      expect(applyJsonPatch(document, [operation])).toStrictEqual(result);
    });
  }

  for (const [document, operation] of [
    [{ l: [1] }, { op: "add", path: "/l/2", value: 2 }],
    [{ l: [1] }, { op: "add", path: "/l/-1", value: 2 }],
    [{ l: [1] }, { op: "add", path: "/l/01", value: 2 }],
    [{ l: [1] }, { op: "add", path: "/l/x", value: 2 }],
    [{ l: [1] }, { op: "replace", path: "/l/1", value: 2 }],
    [{ l: [1] }, { op: "remove", path: "/l/-" }],
    [{ a: "text" }, { op: "add", path: "/a/b", value: 2 }],
    [{ a: null }, { op: "add", path: "/a/b", value: 2 }],
    [{}, { op: "test", path: "/a/b", value: null }], // the parent must be there
    [{ l: [] }, { op: "test", path: "/l/0", value: null }],
    [{ a: 1 }, { op: "test", path: "/a", value: "1" }],
    [{ a: 1 }, { op: "test", path: "/a" }],
    [{ a: {} }, { op: "move", from: "/a", path: "/a/b" }],
    [{}, { op: "copy", from: "/a", path: "/b" }],
    [{}, { op: "remove", path: "/toString" }],
    [{}, { op: "remove", path: "" }],
    [{}, { op: "add", path: "", value: {} }],
    [{}, { op: "replace", path: "", value: "text" }],
    [{}, { op: "add", path: "a", value: 1 }],
    [{}, { op: "add", path: "/a" }],
    [{}, { op: "add", value: 1 }],
    [{}, { op: "move", path: "/a" }],
    [{}, { op: "bogus", path: "/a" }],
  ] as const) {
    test(`${JSON.stringify(operation)} does not apply to ${JSON.stringify(document)}`, () => {
      expect(codeOf(() => applyJsonPatch(document, [operation]))).toBe("Invalid");
    });
  }
});

test("the error names the operation and the path", () => {
  expect(() =>
    applyJsonPatch({ a: 1 }, [
      { op: "test", path: "/a", value: 1 },
      { op: "remove", path: "/data/zzz" },
    ]),
  ).toThrow("Invalid: JSON patch operation 1 (remove /data/zzz): a part of its path is missing");
});

test("all apply or none: the document is untouched by a patch that fails half way", () => {
  const document = { list: [{ n: 1 }] };

  expect(
    codeOf(() =>
      applyJsonPatch(document, [
        { op: "replace", path: "/list/0/n", value: 2 },
        { op: "add", path: "/list/-", value: { n: 3 } },
        { op: "test", path: "/list/0/n", value: 1 },
      ]),
    ),
  ).toBe("Invalid");
  expect(document).toEqual({ list: [{ n: 1 }] });
});

test("a value given once and changed later is changed in one place only", () => {
  const value = { n: 1 };

  const result = applyJsonPatch({}, [
    { op: "add", path: "/a", value },
    { op: "copy", from: "/a", path: "/b" },
    { op: "add", path: "/c", value },
    { op: "replace", path: "/a/n", value: 2 },
    { op: "copy", from: "/a", path: "/d" },
    { op: "replace", path: "/a/n", value: 3 },
  ]);

  expect(result).toEqual({ a: { n: 3 }, b: { n: 1 }, c: { n: 1 }, d: { n: 2 } });
  expect(value).toEqual({ n: 1 });
});

test("what no operation touches is shared", () => {
  const document = { touched: { a: 1 }, other: { b: 1 } };

  const result = applyJsonPatch(document, [
    { op: "replace", path: "/touched/a", value: 2 },
  ]) as typeof document;

  expect(result.other).toBe(document.other);
  expect(applyJsonPatch(document, [])).toBe(document);
});

test("paths and keys that name prototypes stay data", () => {
  expect(codeOf(() => applyJsonPatch({}, [{ op: "add", path: "/__proto__/polluted", value: true }]))).toBe(
    "Invalid",
  );
  expect(codeOf(() => applyJsonPatch({}, [{ op: "add", path: "/constructor/prototype/x", value: 1 }]))).toBe(
    "Invalid",
  );

  const result = applyJsonPatch({}, [
    { op: "add", path: "/__proto__", value: { a: 1 } },
    { op: "replace", path: "/__proto__/a", value: 2 },
  ]) as object;

  expect(JSON.stringify(result)).toBe('{"__proto__":{"a":2}}');
  expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

describe("bounds", () => {
  const test10k = (count: number) =>
    Array.from({ length: count }, () => ({ op: "test", path: "/a", value: 1 }));

  test("10,000 operations apply, one more is too large", () => {
    expect(codeOf(() => applyJsonPatch({ a: 1 }, test10k(10_000)))).toBe("none");
    expect(codeOf(() => applyJsonPatch({ a: 1 }, test10k(10_001)))).toBe("RequestEntityTooLarge");
  });

  test("copies that double the document are stopped before they fill the memory", () => {
    const doubling = Array.from({ length: 40 }, (_, n) => ({ op: "copy", from: "", path: `/copy${n}` }));

    expect(codeOf(() => applyJsonPatch({ a: "x".repeat(100) }, doubling))).toBe("Invalid");
  });

  test("a document cannot be made deeper than 256 levels, whatever the means", () => {
    const down = Array.from({ length: 300 }, (_, n) => ({ op: "add", path: "/a".repeat(n + 1), value: {} }));
    const swallow = Array.from({ length: 300 }, () => [
      { op: "add", path: "/b", value: {} },
      { op: "move", from: "/a", path: "/b/a" },
      { op: "move", from: "/b", path: "/a" },
    ]).flat();
    const doubling = Array.from({ length: 10 }, () => ({ op: "copy", from: "/a", path: "/a/a/a" }));

    expect(codeOf(() => applyJsonPatch({}, down))).toBe("Invalid");
    expect(codeOf(() => applyJsonPatch({ a: {} }, swallow))).toBe("BadRequest");
    expect(codeOf(() => applyJsonPatch({ a: { a: {} } }, doubling))).toBe("none");
    expect(codeOf(() => applyJsonPatch({}, [{ op: "add", path: "/a".repeat(257), value: 1 }]))).toBe(
      "Invalid",
    );
  });

  test("what is not a list of objects is no JSON patch", () => {
    for (const patch of [{}, null, "[]", [1], [null], [{ path: "/a" }]]) {
      expect(codeOf(() => applyJsonPatch({}, patch))).toBe("BadRequest");
    }
  });
});

describe("creating", () => {
  test("equal objects take no operations", () => {
    expect(createJsonPatch({ a: 1, b: undefined }, { a: 1 })).toEqual([]);
  });

  test("an element added in the middle of a list is one addition", () => {
    expect(createJsonPatch({ l: [1, 2, 3] }, { l: [1, 9, 2, 3] })).toEqual([
      { op: "add", path: "/l/1", value: 9 },
    ]);
  });

  test("an element edited is an edit of that element", () => {
    const list = (n: number): Json => [{ name: "a" }, { name: "b", n }, { name: "c" }];

    expect(createJsonPatch({ l: list(1) }, { l: list(2) })).toEqual([
      { op: "replace", path: "/l/1/n", value: 2 },
    ]);
  });

  test("keys are escaped", () => {
    expect(createJsonPatch({}, { "a/b~c": 1 })).toEqual([{ op: "add", path: "/a~1b~0c", value: 1 }]);
  });

  test("what takes more than 10,000 operations is replaced whole", () => {
    const after = Object.fromEntries(Array.from({ length: 10_001 }, (_, n) => [`k${n}`, n]));

    const operations = createJsonPatch({}, after);

    expect(operations).toHaveLength(1);
    expect(applyJsonPatch({}, operations)).toEqual(after);
  });
});

test("for all objects, the patch between two, applied to the first, gives the second", () => {
  fc.assert(
    fc.property(anyObject, anyObject, (before, after) => {
      const text = JSON.stringify(before);

      const result = applyJsonPatch(before, createJsonPatch(before, after));

      // Not toEqual, which does not look at members called __proto__.
      expect(jsonEqual(result, after)).toBe(true);
      expect(JSON.stringify(before)).toBe(text);
    }),
    { numRuns: 2_000 },
  );
});
