import { describe, expect, test } from "vitest";
import { classOf, codeOfNumber, CSI_CODES, CsiError, isCsiError, type CsiCode } from "./errors.ts";

describe("what a caller concludes from a code", () => {
  const uncertain = [1, 4, 8, 10, 14];

  for (const [code, number] of Object.entries(CSI_CODES) as [CsiCode, number][]) {
    test(`${number} ${code} is ${uncertain.includes(number) ? "uncertain" : "certainly not running"}`, () => {
      expect(new CsiError(code, "x").class === "uncertain").toBe(uncertain.includes(number));
      expect(codeOfNumber(number)).toBe(code);
    });
  }

  test("what is no status of the protocol leaves everything open", () => {
    expect(classOf(new Error("socket hang up"))).toBe("uncertain");
    expect(classOf(new CsiError("INTERNAL", "the answer is garbage", { unanswered: true }))).toBe(
      "uncertain",
    );
    expect(codeOfNumber(99)).toBe("UNKNOWN");
  });

  test("the code stands in front of the message and alone", () => {
    const error = new CsiError("NOT_FOUND", "volume v is not here");

    expect(error.message).toBe("NOT_FOUND: volume v is not here");
    expect([error.detail, error.number]).toEqual(["volume v is not here", 5]);
    expect(isCsiError(error, "NOT_FOUND")).toBe(true);
    expect(isCsiError(error, "ABORTED")).toBe(false);
    expect(isCsiError(new Error("x"))).toBe(false);
  });
});
