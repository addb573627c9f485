import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatLabelSelector,
  fromLabelSelectorObject,
  labelKeyProblem,
  labelValueProblem,
  matchesLabels,
  parseLabelSelector,
  type LabelSelector,
} from "./selectors.ts";

/** The recorded config maps: all but `c00` have both labels. */
const objects: Record<string, Record<string, string> | undefined> = {
  c0: { par: "even", n: "0" },
  c00: undefined,
  c1: { par: "odd", n: "1" },
  c2: { par: "even", n: "2" },
  c3: { par: "odd", n: "3" },
  c5: { par: "odd", n: "5" },
  c6: { par: "even", n: "6" },
};

function selected(selector: LabelSelector): string {
  return Object.keys(objects)
    .filter((name) => matchesLabels(selector, objects[name]))
    .join(" ");
}

describe("what the real server selected", () => {
  for (const [text, names] of [
    ["", "c0 c00 c1 c2 c3 c5 c6"],
    ["par=even", "c0 c2 c6"],
    ["par==even", "c0 c2 c6"],
    ["par!=even", "c00 c1 c3 c5"], // an absent label is not "even" either
    ["par", "c0 c1 c2 c3 c5 c6"],
    ["!par", "c00"],
    ["n in (1,2)", "c1 c2"],
    ["n notin (1,2)", "c0 c00 c3 c5 c6"],
    ["n>4", "c5 c6"],
    ["n<2", "c0 c1"],
    ["par=even,n!=2", "c0 c6"],
    [" par = even , n in ( 0 , 6 ) ", "c0 c6"],
    ["par>4", ""], // words are not integers
    ["n in ()", ""],
    ["n notin ()", "c0 c00 c1 c2 c3 c5 c6"],
  ] as const) {
    test(`"${text}"`, () => {
      expect(selected(parseLabelSelector(text))).toBe(names);
    });
  }
});

describe("what cannot be understood is refused, in the server's words", () => {
  for (const [text, message] of [
    ["a b c", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ["a,", "found '', expected: identifier after ','"],
    ["a,,b", "found ',', expected: identifier after ','"],
    [",a", "found ',', expected: !, identifier, or 'end of string'"],
    ["=a", "found '=', expected: !, identifier, or 'end of string'"],
    ["!", "unable to parse requirement: found '', expected: identifier"],
    ["!a=b", "found '=', expected: ',' or 'end of string'"],
    ["a=b c", "found 'c', expected: ',' or 'end of string'"],
    ["a=(b)", "unable to parse requirement: found '(', expected: identifier"],
    ["a in b", "unable to parse requirement: found 'b', expected: '('"],
    ["a in (b", "unable to parse requirement: found '', expected: ',' or ')'"],
    ["a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"],
    ["a>x", "unable to parse requirement: \"a\": for 'Gt', 'Lt' operators, the value must be an integer"],
    [
      "a>9223372036854775808",
      "unable to parse requirement: \"a\": for 'Gt', 'Lt' operators, the value must be",
    ],
    ["-a", 'unable to parse requirement: "-a": name part must be'],
    ["A.io/a", 'unable to parse requirement: "A.io/a": prefix part must be'],
    ["a=-b", 'unable to parse requirement: "a": value "-b": a label value must be'],
  ] as const) {
    test(`"${text}"`, () => {
      expect(() => parseLabelSelector(text)).toThrow(`BadInput: ${message}`);
    });
  }
});

test("in and notin are words where a key or a value stands", () => {
  expect(parseLabelSelector("in=notin,notin in (in)")).toEqual([
    { key: "in", operator: "=", values: ["notin"] },
    { key: "notin", operator: "in", values: ["in"] },
  ]);
});

test("an empty place between commas is the empty value", () => {
  expect(parseLabelSelector("a in (x,,x),b=")).toEqual([
    { key: "a", operator: "in", values: ["", "x"] },
    { key: "b", operator: "=", values: [""] },
  ]);
});

test("integers compare as int64, not as floats or texts", () => {
  const above = parseLabelSelector("n>9007199254740992");

  expect(matchesLabels(above, { n: "9007199254740993" })).toBe(true);
  expect(matchesLabels(above, { n: "9007199254740992" })).toBe(false);
  expect(matchesLabels(above, { n: "9223372036854775808" })).toBe(false); // no int64
  expect(matchesLabels(parseLabelSelector("n>9"), { n: "010" })).toBe(true);
});

test("a label called constructor is only there if the object has it", () => {
  expect(matchesLabels(parseLabelSelector("constructor"), {})).toBe(false);
  expect(matchesLabels(parseLabelSelector("!constructor"), {})).toBe(true);
  expect(matchesLabels(parseLabelSelector("constructor=x"), { constructor: "x" })).toBe(true);
});

describe("selectors in objects", () => {
  test("labels and expressions must all hold", () => {
    const selector = fromLabelSelectorObject({
      matchLabels: { par: "even" },
      matchExpressions: [
        { key: "n", operator: "NotIn", values: ["2"] },
        { key: "n", operator: "Exists" },
        { key: "other", operator: "DoesNotExist", values: [] },
      ],
    });

    expect(selected(selector)).toBe("c0 c6");
    expect(formatLabelSelector(selector)).toBe("n notin (2),n,!other,par=even");
  });

  test("an empty one selects everything", () => {
    expect(selected(fromLabelSelectorObject({}))).toBe("c0 c00 c1 c2 c3 c5 c6");
  });

  test("what makes no sense is refused", () => {
    const refuse = (operator: string, values: string[]) => () =>
      fromLabelSelectorObject({ matchExpressions: [{ key: "a", operator, values }] });

    expect(refuse("Like", ["x"])).toThrow('"Like" is not a valid label selector operator');
    expect(refuse("In", [])).toThrow("values set can't be empty");
    expect(refuse("Exists", ["x"])).toThrow("values set must be empty");
    expect(refuse("In", ["a b"])).toThrow('value "a b"');
  });
});

describe("keys and values of labels", () => {
  for (const [key, isValid] of [
    ["a", true],
    ["kubernetes.io/hostname", true],
    ["a".repeat(63), true],
    ["a".repeat(64), false],
    [`${"a.".repeat(126)}b/c`, true],
    [`${"a.".repeat(127)}b/c`, false],
    ["", false],
    ["/a", false],
    ["a/", false],
    ["a/b/c", false],
    ["a..b/c", false],
    ["_a", false],
  ] as const) {
    test(`key ${key.slice(0, 20)} of ${key.length} characters is ${isValid ? "fine" : "refused"}`, () => {
      expect(labelKeyProblem(key) === undefined).toBe(isValid);
    });
  }

  test("a value may be empty but not end in a dot", () => {
    expect(labelValueProblem("")).toBeUndefined();
    expect(labelValueProblem("a_b.c-d")).toBeUndefined();
    expect(labelValueProblem("a.")).toContain("must start and end with");
    expect(labelValueProblem("a".repeat(64))).toContain("at most 63");
  });
});

describe("for all selectors", () => {
  const key = fc.constantFrom("a", "b", "in", "notin", "x.io/y");
  const value = fc.constantFrom("", "1", "2", "10", "in", "a-b");
  const requirement = fc.oneof(
    fc.tuple(key, fc.constantFrom("=", "==", "!="), value).map(([k, op, v]) => `${k}${op}${v}`),
    fc.tuple(key, fc.constantFrom(">", "<"), fc.nat({ max: 20 })).map(([k, op, v]) => `${k}${op}${v}`),
    fc
      .tuple(key, fc.constantFrom("in", "notin"), fc.array(value))
      .map(([k, op, vs]) => `${k} ${op} (${vs.join(",")})`),
    key,
    key.map((k) => `!${k}`),
  );
  const selectors = fc
    .array(requirement, { maxLength: 4 })
    .map((terms) => parseLabelSelector(terms.join(",")));
  const labels = fc.dictionary(key, value);

  test("what is written reads as the same selector", () => {
    fc.assert(
      fc.property(selectors, (selector) => {
        expect(parseLabelSelector(formatLabelSelector(selector))).toEqual(selector);
      }),
    );
  });

  test("a requirement and its negation never agree", () => {
    fc.assert(
      fc.property(key, value, labels, (k, v, given) => {
        const is = (text: string) => matchesLabels(parseLabelSelector(text), given);

        expect(is(`${k}=${v}`)).not.toBe(is(`${k}!=${v}`));
        expect(is(`${k} in (${v},1)`)).not.toBe(is(`${k} notin (${v},1)`));
        expect(is(k)).not.toBe(is(`!${k}`));
      }),
    );
  });
});
