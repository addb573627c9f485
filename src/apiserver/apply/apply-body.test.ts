import { describe, expect, test } from "vitest";
import { parseApplyBody } from "./apply-body.ts";

describe("the body of an apply", () => {
  test("JSON and YAML of the same object are the same", () => {
    const object = { apiVersion: "v1", data: { a: "1", multi: "x\ny\n" }, metadata: { labels: null } };
    const yaml = 'apiVersion: v1\ndata:\n  a: "1"\n  multi: |\n    x\n    y\nmetadata:\n  labels:\n';

    expect(parseApplyBody(JSON.stringify(object)).applied).toEqual(object);
    expect(parseApplyBody(yaml).applied).toEqual(object);
    expect(parseApplyBody("{apiVersion: v1}").applied).toEqual({ apiVersion: "v1" });
  });

  test("YAML is read as the real server reads it: old numbers and words, but no times", () => {
    const yaml = "a: yes\nb: off\nc: 0644\nd: 2026-01-01\ne: 0o17\nf: 12:30\ng: 1.5Gi\nh: '0644'\n1: x\n";

    expect(parseApplyBody(yaml).applied).toEqual({
      a: true,
      b: false,
      c: 420,
      d: "2026-01-01",
      e: 15,
      f: "12:30",
      g: "1.5Gi",
      h: "0644",
      1: "x",
    });
  });

  for (const text of ['{"data":{"a":"1","a":"2"}}', "data:\n  a: '1'\n  a: '2'\n"]) {
    test(`a duplicate key is a warning, an error under Strict, nothing under Ignore: ${text.slice(0, 12)}`, () => {
      expect(parseApplyBody(text).applied).toEqual({ data: { a: "2" } });
      expect(parseApplyBody(text).duplicates).toEqual(["data.a"]);
      expect(parseApplyBody(text, "Ignore").duplicates).toEqual([]);
      expect(() => parseApplyBody(text, "Strict")).toThrow("BadRequest: error strict decoding YAML: ");
    });
  }

  for (const [what, text] of [
    ["a list", "[1]"],
    ["a scalar", "hello"],
    ["nothing", ""],
    ["broken YAML", "a: [1"],
    ["a bomb of aliases", bomb()],
    ["a list that contains itself", "a: &a [*a]"],
    ["a map that merges itself", "a: &a {<<: *a, b: 1}"],
    ["a key that is a list", "? [1]\n: 2"],
    ["two documents", "a: 1\n---\nb: 1\n"],
    ["JSON of 300 levels", '{"a":'.repeat(300) + "1" + "}".repeat(300)],
    ["YAML of 100,000 levels on one line", `a: ${"- ".repeat(100_000)}`],
    ["YAML of 20,000 levels behind comments that close them", `a: ${"[ # ]\n ".repeat(20_000)}`],
    ["YAML of 20,000 explicit keys", "? ".repeat(20_000)],
    ["YAML of more than 200,000 tokens", Array.from({ length: 50_000 }, (_, i) => `k${i}: v`).join("\n")],
  ] as const) {
    test(`${what} is 400`, () => {
      expect(() => parseApplyBody(text)).toThrow(/^BadRequest: (error decoding YAML: |.* levels$)/);
    });
  }
});

/** Nine levels of nine aliases each: 387 million nodes. */
function bomb(): string {
  const levels = Array.from({ length: 9 }, (_, level) => {
    const items = level === 0 ? "x" : `*l${level - 1}`;
    return `l${level}: &l${level} [${Array(9).fill(items).join(", ")}]`;
  });
  return levels.join("\n");
}
