import { expect, test } from "vitest";
import type { Act } from "./act.ts";
import { runSeed } from "./run.ts";

const at = (seconds: number, act: Act) => ({ atMs: seconds * 1_000, act });

for (const [when, blackoutAt, forMs, controllers] of [
  ["while upstream's controller runs", 60, 10_000, ["original-controller", "original-controller", "ours"]],
  ["while ours have been ended, and power is back before", 20, 5_000, ["original-controller", "ours"]],
  ["while ours have been ended, and power is back after", 20, 40_000, ["original-controller", "ours"]],
  ["while upstream's has been ended, and power is back before", 195, 8_000, ["original-controller", "ours"]],
] as const)
  test(`when the power fails ${when}, only those run again that the operator wants`, async () => {
    const { violations, lines } = await runSeed(1, {
      loop: false,
      durationMs: 240_000,
      plan: [
        at(10, { kind: "original-controller", kill: true, rate: 0, forMs: 150_000 }),
        at(blackoutAt, { kind: "blackout", forMs }),
      ],
    });

    expect(violations).toEqual([]);
    const started = lines.flatMap(({ who, what }) => {
      if (what !== "starts") return [];
      return who === "original-controller" ? [who] : who === "controller-0" ? ["ours"] : [];
    });
    expect(started).toEqual(["ours", ...controllers]);
  });
