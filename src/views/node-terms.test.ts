import { expect, test } from "vitest";
import type { Node } from "../kube/api/node.ts";
import { matchesNodeAffinity, termsInWords } from "./node-terms.ts";

const node = { metadata: { name: "a", labels: { zone: "1", disk: "ssd", size: "10" } } } as unknown as Node;
const term = (key: string, operator: string, values?: string[]) => ({
  matchExpressions: [{ key, operator, values }],
});

for (const [name, terms, matches] of [
  ["In", [term("zone", "In", ["1", "2"])], true],
  ["In another", [term("zone", "In", ["2"])], false],
  ["NotIn", [term("zone", "NotIn", ["2"])], true],
  ["NotIn, absent", [term("rack", "NotIn", ["2"])], true],
  ["Exists", [term("disk", "Exists")], true],
  ["DoesNotExist", [term("disk", "DoesNotExist")], false],
  ["Gt", [term("size", "Gt", ["9"])], true],
  ["Lt", [term("size", "Lt", ["9"])], false],
  ["an operator nobody knows", [term("zone", "Near", ["1"])], false],
  ["one of several terms", [term("zone", "In", ["2"]), term("disk", "Exists")], true],
  ["an empty term", [{}], false], // as upstream: it selects nothing
  ["a field", [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["a"] }] }], true],
  ["an inherited label", [term("constructor", "Exists")], false],
] as const) {
  test(`${name}: ${matches ? "matches" : "does not match"}`, () => {
    expect(matchesNodeAffinity(node, terms)).toBe(matches);
  });
}

test("terms are told in words", () => {
  expect(termsInWords([term("zone", "In", ["1", "2"]), term("disk", "DoesNotExist")])).toBe(
    "zone is 1 or 2; or disk is not set",
  );
});
