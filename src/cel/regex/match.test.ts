import { describe, expect, test } from "vitest";
import { pick as pickFrom } from "../../base/random.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { CelError } from "../errors.ts";
import { Budget } from "../program.ts";
import { Pattern } from "./match.ts";

const plenty = () => new Budget(1_000_000);

describe("a pattern means what it means in RE2", () => {
  for (const [pattern, text, found] of [
    ["a|ab", "ab", "a"], // the first that matches, not the longest
    ["(a|ab)(c|bcd)(d*)", "abcd", "abcd"],
    ["a+?", "aaa", "a"],
    ["(?U)a+", "aaa", "a"],
    ["(?i)straße", "STRAßE", "STRAßE"],
    ["(?i:a)b", "Ab", "Ab"],
    ["x*", "aaa", ""],
    ["^b", "a\nb", undefined],
    ["(?m)^b$", "a\nb", "b"],
    ["a.b", "a\nb", undefined],
    ["(?s)a.b", "a\nb", "a\nb"],
    ["\\bfoo\\b", "a foo b", "foo"],
    ["[[:alpha:]]+", "12ab34", "ab"],
    ["[^a-c]+", "abcdef", "def"],
    ["[]a]+", "]a", "]a"],
    ["\\pL+", "12äé3", "äé"],
    ["\\p{Greek}+", "abγδ", "γδ"],
    ["\\x41\\x{1F600}", "A😀", "A😀"],
    ["a{2,3}", "aaaa", "aaa"],
    ["\\Qa.b\\E", "axb a.b", "a.b"],
    ["(?P<name>a)(?:b)", "ab", "ab"],
    ["a{,2}", "a{,2}", "a{,2}"],
  ] as const) {
    test(`${pattern} in ${JSON.stringify(text)}`, () => {
      expect(new Pattern(pattern).find(text, plenty())).toBe(found);
    });
  }

  test("what RE2 does not have is refused", () => {
    for (const pattern of [
      "(a)\\1",
      "(?=a)",
      "(?<!a)b",
      "a**",
      "(",
      ")",
      "[a",
      "a{1001}",
      "*",
      "\\8",
      "(?P<a",
      "[z-a]",
    ]) {
      expect(() => new Pattern(pattern), pattern).toThrow(CelError);
    }
  });
});

/** Where JavaScript means the same; it judges 2,000 patterns of letters, sets, choices and counts. */
test("both engines find the same in patterns that both have", () => {
  const random = createSeededRandom("patterns");
  const pick = <T>(items: readonly T[]): T => pickFrom(random, items);
  const make = (depth: number): string => {
    const part = () => make(depth - 1);
    if (depth === 0) return pick(["a", "b", "[ab]", "[^a]", ".", "c", "\\b", "^", "$"]);
    return pick([
      () => `${part()}${part()}`,
      () => `(?:${part()}|${part()})`,
      () => `(?:${part()})*`,
      () => `(?:${part()})+?`,
      () => `(?:${part()}){1,2}`,
      () => `(?:${part()})?`,
      part,
    ])();
  };
  let compared = 0;
  for (let round = 0; round < 2_000; round++) {
    const pattern = make(3);
    const text = Array.from({ length: 8 }, () => pick(["a", "b", "c", " "])).join("");
    const expected = new RegExp(pattern, "u").test(text);

    expect(new Pattern(pattern).matches(text, plenty()), `${pattern} in ${text}`).toBe(expected);
    compared++;
  }
  expect(compared).toBe(2_000);
});

test("patterns that take JavaScript for ever take steps in proportion to the text", () => {
  for (const pattern of ["(a+)+$", "^(a|aa)*$", "(.*a){20}$", "(a*)*b!b"]) {
    const budget = new Budget(2_000_000);
    const text = `${"a".repeat(5_000)}!`;

    expect(new Pattern(pattern).matches(text, budget), pattern).toBe(false);
  }
});

test("a large pattern is refused, and a large text ends with the budget", () => {
  expect(() => new Pattern("((a{100}){100}){100}")).toThrow("too large");
  expect(() => new Pattern("(x+x+)+y").matches("x".repeat(100_000), new Budget(10_000))).toThrow(
    "cost limit",
  );
});
