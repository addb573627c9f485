import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { exactInteger, formatJson, parseJson } from "./json-text.ts";
import type { Json } from "./patch/json.ts";

const LONG = 9_007_199_254_740_993n; // 2^53 + 1, which a double has as 2^53

describe("whole numbers keep their digits", () => {
  for (const [text, value] of [
    ["9007199254740991", 9_007_199_254_740_991],
    ["-9007199254740991", -9_007_199_254_740_991],
    ["9007199254740993", LONG],
    ["-9223372036854775808", -(2n ** 63n)],
    ["18446744073709551616", 2n ** 64n],
    ["123456789012345678901234567890", 123_456_789_012_345_678_901_234_567_890n],
    ["[9007199254740993]", [LONG]],
    ['{"a": 9007199254740993}', { a: LONG }],
    ['{"a":\n\t9007199254740993\r}', { a: LONG }],
    ['{"a":{"b":[1,{"c":9007199254740993,"d":"x"}]},"e":2}', { a: { b: [1, { c: LONG, d: "x" }] }, e: 2 }],
    ['{"a":9007199254740993,"a":1}', { a: 1 }],
    ['{"a":1,"a":9007199254740993}', { a: LONG }],
  ] as const) {
    test(text, () => expect(parseJson(text)).toEqual(value));
  }
});

describe("and what only looks like one stays what it is", () => {
  for (const text of [
    '"9007199254740993"',
    '{"a":"at 9007199254740993 ns"}',
    '{"9007199254740993":"\\" 9007199254740993"}',
    '{"a\\\\":": 9007199254740993,"}',
    "9007199254740993.5",
    "9007199254740993e3",
    "0.9007199254740993",
    "1e400",
    '[" 9007199254740993",true,false,null,{},[],-0,1.5e-7]',
    `"${"x".repeat(3 * 2 ** 20)} 9007199254740993"`,
  ]) {
    test(text.slice(0, 60), () => expect(parseJson(text)).toEqual(JSON.parse(text)));
  }
});

/** Numbers of all lengths between everything else that JSON has, names of prototypes included. */
const { tree: trees } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(exactInteger),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(exactInteger),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }),
    fc.string(),
    fc.constantFrom(null, true, false, "__proto__", "\\", '"', ": 9007199254740993,"),
    fc.array(tie("tree")),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("constructor", '"', "\\")), tie("tree")),
  ),
}));

test("whatever is written is read again, on one line and on many", () => {
  fc.assert(
    fc.property(trees, (value) => {
      expect(parseJson(formatJson(value))).toEqual(value);
      expect(parseJson(formatJson(value, "  "))).toEqual(value);
    }),
  );
});

test("both ways of writing agree wherever the plain one can be used", () => {
  fc.assert(
    fc.property(trees, fc.constantFrom("", "  "), (value, indent) => {
      const withoutLong = JSON.parse(formatJson(value)) as Json;

      // With a long number beside it, the same value is written by the other way.
      const beside = formatJson([withoutLong, LONG], indent);

      const marked = formatJson([withoutLong, "here"], indent);
      expect(beside).toBe(marked.replace(/"here"(\n?\])$/, `${LONG}$1`));
    }),
  );
});

test("a key is a key, whatever its name", () => {
  const value = parseJson('{"__proto__":9007199254740993}') as object;

  expect(Object.keys(value)).toEqual(["__proto__"]);
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect(formatJson(value)).toBe('{"__proto__":9007199254740993}');
});

test("what is no JSON is refused in the words of JSON.parse", () => {
  expect(() => parseJson('{"a":9007199254740993')).toThrow(SyntaxError);
});

test("100,000 levels and 3 MB of digits are read without an end of stack or time", () => {
  const deep = `${"[".repeat(100_000)}9007199254740993${"]".repeat(100_000)}`;
  let inner = parseJson(deep);
  while (Array.isArray(inner)) inner = (inner as unknown[])[0];

  expect(inner).toBe(LONG);
  expect(parseJson(`"${"1".repeat(3 * 2 ** 20)}"`)).toHaveLength(3 * 2 ** 20);
  expect(parseJson("1".repeat(3 * 2 ** 20))).toBe(Infinity);
});
