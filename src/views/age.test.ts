import { expect, test } from "vitest";
import { ageSince, formatAge } from "./age.ts";

for (const [seconds, text] of [
  [-5, "0s"], // the clock of a node may be ahead
  [0, "0s"],
  [119, "119s"],
  [120, "2m"],
  [348, "5m48s"],
  [599, "9m59s"],
  [600, "10m"],
  [10_799, "179m"],
  [10_800, "3h"],
  [12_000, "3h20m"],
  [28_800, "8h"],
  [172_799, "47h"],
  [172_800, "2d"],
] as const) {
  test(`${seconds} s are ${text}`, () => {
    expect(formatAge(seconds * 1_000)).toBe(text);
  });
}

test("nobody knows the age of what has no beginning", () => {
  expect(ageSince(undefined, 5)).toBe("");
});
