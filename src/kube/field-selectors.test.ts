import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fieldsOf, formatFieldSelector, matchesFields, parseFieldSelector } from "./field-selectors.ts";

const pod: Record<string, string> = {
  "metadata.name": "web",
  "spec.nodeName": "n1",
  "status.phase": "Running",
};
const valueOf = (path: string): string => pod[path] ?? "";

for (const [text, matches] of [
  ["", true],
  [",", true],
  ["spec.nodeName=n1", true],
  ["spec.nodeName==n1", true],
  ["spec.nodeName=n2", false],
  ["spec.nodeName!=n2", true],
  ["spec.nodeName!=n1", false],
  ["spec.nodeName=n1,status.phase!=Failed", true],
  ["spec.nodeName=n1,status.phase=Failed", false],
  ["metadata.namespace=", true], // an empty value is a value
  ["metadata.namespace!=", false],
] as const) {
  test(`"${text}" ${matches ? "selects" : "leaves out"} the pod`, () => {
    expect(matchesFields(parseFieldSelector(text), valueOf)).toBe(matches);
  });
}

describe("what cannot be understood is refused", () => {
  for (const [text, message] of [
    ["metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ["a=1,b", "invalid selector: 'a=1,b'; can't understand 'b'"],
    ["a=b=c", "invalid field selector: unescaped character in value: ="],
    ["a=\\b", "invalid field selector: invalid escape sequence: \\b"],
    ["a=b\\", "invalid field selector: invalid escape sequence: \\"],
  ] as const) {
    test(text, () => {
      expect(() => parseFieldSelector(text)).toThrow(`BadInput: ${message}`);
    });
  }
});

test("a backslash makes comma, equals sign and backslash data", () => {
  expect(parseFieldSelector("a=x\\,y,b!=1\\=1,c=\\\\")).toEqual([
    { path: "a", operator: "=", value: "x,y" },
    { path: "b", operator: "!=", value: "1=1" },
    { path: "c", operator: "=", value: "\\" },
  ]);
});

test("fields are named once each", () => {
  expect(fieldsOf(parseFieldSelector("a!=1,a!=2,b=3"))).toEqual(["a", "b"]);
});

test("any selector survives being written and read", () => {
  const requirement = fc.record({
    path: fc.stringMatching(/^[a-z]+(\.[a-z]+)?$/),
    operator: fc.constantFrom("=" as const, "!=" as const),
    value: fc.string({ unit: fc.constantFrom("a", "\\", ",", "=", "!", " ", "\n", "ü") }),
  });
  fc.assert(
    fc.property(fc.array(requirement), (selector) => {
      const read = parseFieldSelector(formatFieldSelector(selector));

      expect(new Set(read.map((one) => JSON.stringify(one)))).toEqual(
        new Set(selector.map(({ path, operator, value }) => JSON.stringify({ path, operator, value }))),
      );
    }),
  );
});
