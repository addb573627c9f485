import { expect, test } from "vitest";
import { addBranches, blocksOf, parseMappings, toFileBranches } from "./branches.ts";

const source = ["function f(x: number) {", "  if (x > 1) return 1;", "  return 2;", "}"].join("\n");
const generated = ["function f(x) {", "    if (x > 1)", "        return 1;", "    return 2;", "}"].join("\n");
// What the compiler writes for these two.
const mappings =
  "AAAA,SAAS,CAAC,CAAC,CAAS;IAClB,IAAI,CAAC,GAAG,CAAC;QAAE,OAAO,CAAC,CAAC;IACpB,OAAO,CAAC,CAAC;AACX,CAAC";

const measured = (ranges: { startOffset: number; endOffset: number; count: number }[]) =>
  toFileBranches([{ ranges }], {
    mappings: parseMappings(mappings, generated),
    source,
    length: generated.length,
  });
const whole = { startOffset: 0, endOffset: generated.length, count: 1 };
const at = (text: string) => ({
  startOffset: generated.indexOf(text),
  endOffset: generated.indexOf(text) + text.length,
  count: 0,
});

test("a block that did not run is named by its place in the source", () => {
  expect(blocksOf(measured([whole, at("return 1;")]))).toMatchObject([
    { line: 2, column: 14, text: "if (x > 1) return 1;" },
  ]);
});

test("what ran in one of two runs ran", () => {
  const one = { "src/a.ts": measured([whole, at("return 1;")]) };
  const other = { "src/a.ts": measured([whole, at("return 2;")]) };

  expect(blocksOf(addBranches(one, other)["src/a.ts"] ?? one["src/a.ts"])).toEqual([]);
  expect(blocksOf(addBranches(one, one)["src/a.ts"] ?? other["src/a.ts"])).toHaveLength(1);
});

test("of a function that never ran the beginning is named", () => {
  expect(blocksOf(measured([{ ...whole, count: 0 }])).map(({ line }) => line)).toEqual([1]);
});
