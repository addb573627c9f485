import { expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { KubeError } from "../errors.ts";
import { planAfterSync, planAfterWatch, refusesStreamingList, ResumePosition } from "./reflector-plan.ts";

const random = createSeededRandom(1);
const failed = (error: unknown, failures: number) =>
  planAfterWatch({ result: { kind: "failed", error }, failures }, random);
const tooLarge = new KubeError("Timeout", "too large", {
  status: 504,
  details: { causes: [{ reason: "ResourceVersionTooLarge" }] },
});

for (const [what, step, kind, minMs, maxMs] of [
  [
    "a healthy watch that ended",
    planAfterWatch({ result: { kind: "ended" }, failures: 0 }, random),
    "resume",
    0,
    0,
  ],
  [
    "a watch that ended at once",
    planAfterWatch({ result: { kind: "ended" }, failures: 1 }, random),
    "resume",
    200,
    400,
  ],
  [
    "silence, after which the wait is over",
    planAfterWatch({ result: { kind: "silent" }, failures: 1 }, random),
    "resume",
    0,
    0,
  ],
  ["a broken connection after news", failed(new KubeError("ConnectionLost", "x"), 0), "resume", 0, 0],
  ["a broken connection without", failed(new KubeError("ConnectionLost", "x"), 3), "resume", 800, 1_600],
  ["an expired position", failed(new KubeError("Expired", "x"), 1), "sync", 0, 0],
  ["expired again and again", failed(new KubeError("Expired", "x"), 4), "sync", 1_600, 3_200],
  ["a position from the server's future", failed(tooLarge, 1), "sync", 0, 0],
  [
    "a server that asks for patience",
    failed(new KubeError("TooManyRequests", "x", { retryAfterMs: 7_000 }), 1),
    "resume",
    7_000,
    7_000,
  ],
  ["no rights, for ever so long", failed(new KubeError("Forbidden", "x"), 1_000), "resume", 15_000, 30_000],
  ["garbage once", failed(new KubeError("BadResponse", "x"), 1), "resume", 200, 400],
  [
    "garbage at the same place five times",
    failed(new KubeError("BadResponse", "x"), 5),
    "sync",
    3_200,
    6_400,
  ],
  ["something that is no KubeError", failed(new TypeError("x"), 1), "resume", 200, 400],
  ["a list that failed", planAfterSync(new KubeError("Unreachable", "x"), 2, random), "sync", 400, 800],
] as const) {
  test(`after ${what}: ${kind} in ${minMs} to ${maxMs} ms`, () => {
    expect(step.kind).toBe(kind);
    expect(step.delayMs).toBeGreaterThanOrEqual(minMs);
    expect(step.delayMs).toBeLessThanOrEqual(maxMs);
  });
}

test("only a refusal of the parameter ends streaming lists, not a server in trouble", () => {
  expect(refusesStreamingList(new KubeError("Invalid", "x"))).toBe(true);
  expect(refusesStreamingList(new KubeError("ServiceUnavailable", "x"))).toBe(false);
  expect(refusesStreamingList(undefined)).toBe(false);
});

test("a resume goes back eight events, but never behind a bookmark", () => {
  const position = new ResumePosition("100");
  for (let version = 101; version <= 108; version++) position.event(String(version));
  expect(position.version).toBe("100");
  position.event("109");
  expect(position.version).toBe("101");

  expect(position.bookmark("150")).toBe(true);
  expect(position.version).toBe("150");
  expect(position.bookmark("150")).toBe(false);
  expect(position.bookmark("99")).toBe(false);
  expect(position.version).toBe("150");
});
