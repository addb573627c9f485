import { describe, expect, test } from "vitest";
import vectors from "./fixtures/canonical-vectors.json" with { type: "json" };
import { canonicalMicroTime, formatMicroTime, formatTime, parseMicroTime, parseTime } from "./time.ts";

interface Vector {
  readonly in: string;
  readonly time?: string;
}

describe("the vectors of the real library", () => {
  for (const { in: text, time } of vectors.times as readonly Vector[]) {
    if (time === undefined) {
      test(`"${text}" is no Time`, () => {
        expect(() => parseTime(text)).toThrow(`BadInput: parsing "${text}" as Time`);
      });
    } else {
      test(`"${text}" is the Time ${time}`, () => {
        expect(JSON.stringify(formatTime(parseTime(text)))).toBe(time);
      });
    }
    test(`"${text}" is no MicroTime`, () => {
      expect(() => parseMicroTime(text)).toThrow(`BadInput: parsing "${text}" as MicroTime`);
    });
  }
});

test("a fraction of a Time is dropped, never rounded, also before 1970", () => {
  expect(formatTime(parseTime("2026-01-01T00:00:00.999999999Z"))).toBe("2026-01-01T00:00:00Z");
  expect(formatTime(parseTime("1969-12-31T23:59:59.5Z"))).toBe("1969-12-31T23:59:59Z");
  expect(formatTime(new Date(1_999))).toBe("1970-01-01T00:00:01Z");
});

test("a MicroTime has six digits whatever its offset, and keeps them", () => {
  expect(canonicalMicroTime("2026-01-01T01:30:00.123456+01:30")).toBe("2026-01-01T00:00:00.123456Z");
  expect(canonicalMicroTime("2025-12-31T20:00:00.000001-04:00")).toBe("2026-01-01T00:00:00.000001Z");
  expect(parseMicroTime("2026-01-01T00:00:00.123456Z")).toEqual(new Date(Date.UTC(2026, 0, 1, 0, 0, 0, 123)));
  expect(formatMicroTime(new Date(123))).toBe("1970-01-01T00:00:00.123000Z");
});

describe("moments that do not exist are refused", () => {
  for (const text of [
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:60:00Z",
    "2026-01-01T23:59:60Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00+00:60",
    "2026-01-01T00:00:00.Z",
    " 2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\n",
  ]) {
    test(JSON.stringify(text), () => {
      expect(() => parseTime(text)).toThrow("BadInput");
    });
  }
});

test("a leap day and the first year are moments like any other", () => {
  expect(formatTime(parseTime("2024-02-29T12:00:00Z"))).toBe("2024-02-29T12:00:00Z");
  expect(formatTime(parseTime("0001-01-01T00:00:00Z"))).toBe("0001-01-01T00:00:00Z");
});

test("a date nobody could read back is not written", () => {
  expect(() => formatTime(new Date(NaN))).toThrow("BadInput");
  expect(() => formatMicroTime(new Date(8.64e15))).toThrow("BadInput");
});
