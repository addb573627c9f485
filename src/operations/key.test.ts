import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keysConflict, type OperationKey } from "./key.ts";

const NONE: OperationKey = { volume: "" };
const V: OperationKey = { volume: "V" };
const V_A: OperationKey = { volume: "V", node: "a" };
const V_B: OperationKey = { volume: "V", node: "b" };
const V_P: OperationKey = { volume: "V", pod: "p" };
const V_Q: OperationKey = { volume: "V", pod: "q" };

describe("scenario 122: running x new", () => {
  for (const [running, next, verdict] of [
    [NONE, NONE, "run"],
    [NONE, V, "run"],
    [NONE, V_A, "run"],
    [NONE, V_B, "run"],
    [V, NONE, "run"],
    [V, V, "refuse"],
    [V, V_A, "refuse"],
    [V, V_B, "refuse"],
    [V_A, NONE, "run"],
    [V_A, V, "refuse"],
    [V_A, V_A, "refuse"],
    [V_A, V_B, "run"],
    // With pods.
    [V_P, V, "refuse"],
    [V_P, V_P, "refuse"],
    [V_P, V_Q, "run"],
    [V_P, V_A, "refuse"],
    [{ volume: "V", pod: "p", node: "a" }, { volume: "V", pod: "p", node: "b" }, "run"],
    [{ volume: "V", pod: "p", node: "a" }, { volume: "V", pod: "q", node: "a" }, "run"],
    // Another volume is another world, and an empty name is a missing one.
    [V, { volume: "W" }, "run"],
    [V_A, { volume: "V", node: "" }, "refuse"],
    [{ volume: "", node: "a" }, { volume: "", node: "a" }, "run"],
  ] as const) {
    test(`${JSON.stringify(running)} runs, ${JSON.stringify(next)} comes: ${verdict}`, () => {
      expect(keysConflict(running, next)).toBe(verdict === "refuse");
    });
  }
});

test("a conflict is mutual", () => {
  const part = fc.constantFrom("", "a", "b");
  const key = fc.record({ volume: fc.constantFrom("", "V", "W"), pod: part, node: part });

  fc.assert(fc.property(key, key, (one, other) => keysConflict(one, other) === keysConflict(other, one)));
});
