import { expect, test } from "vitest";
import { warningHeader } from "./warnings.ts";

test("no warnings are no header", () => {
  expect(warningHeader([])).toBeUndefined();
});

test("quotes are escaped, and several warnings stand in one header", () => {
  expect(warningHeader(['unknown field "a"', "b\\c"])).toBe(
    String.raw`299 - "unknown field \"a\"", 299 - "b\\c"`,
  );
});

test("no text can end the header or hold what a header cannot", () => {
  const header = warningHeader(["a\r\nset-cookie: x\u0000", "ü€"]) ?? "";

  expect(header).toMatch(/^[\x20-\x7e\x80-\xff]*$/);
  expect(Buffer.from(header, "latin1").toString("utf8")).toContain("ü€");
});

test("the header stays below 4 kB however much there is to say", () => {
  const header = warningHeader(
    Array.from({ length: 100 }, (_, at) => `unknown field "${"x".repeat(100)}${at}"`),
  );

  expect(header?.length).toBeLessThan(4_097);
  expect(header?.length).toBeGreaterThan(3_800);
});
