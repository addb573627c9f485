import { describe, expect, test } from "vitest";
import recorded from "../../../test/fixtures/apiserver/20-ages.json" with { type: "json" };
import { ageOf, ageText } from "./age.ts";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `2h59m0s` and `-1.5s`, as Go writes durations. */
function durationMs(text: string): number {
  const sign = text.startsWith("-") ? -1 : 1;
  const parts = [...text.matchAll(/([\d.]+)(ms|s|m|h)/g)];
  return sign * parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit!] ?? 0), 0);
}

describe("the age of an object", () => {
  for (const [duration, text] of Object.entries(recorded.ages)) {
    test(`${duration} is ${text}`, () => {
      expect(ageText(durationMs(duration))).toBe(text);
    });
  }

  test("is unknown for what was never created", () => {
    expect(ageOf("", 0)).toBe("<unknown>");
    expect(ageOf("yesterday", 0)).toBe("<unknown>");
  });

  test("counts from a moment in any time zone, with or without fractions", () => {
    const nowMs = Date.parse("2026-01-01T00:01:00Z");

    expect(ageOf("2026-01-01T00:00:00Z", nowMs)).toBe("60s");
    expect(ageOf("2026-01-01T01:00:00.500000+01:00", nowMs)).toBe("59s");
  });
});
