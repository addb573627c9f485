import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CoverageObserver } from "./coverage.ts";
import { runSeed } from "./run.ts";
import { newest } from "./seeds.ts";
import { WaitLines } from "./wait-lines.ts";

const LIST = new URL("../../test/fixtures/sim-seeds.txt", import.meta.url);

const found = readFileSync(LIST, "utf8")
  .split("\n")
  .flatMap((line) => {
    const [, seed, what] = /^(\d+)\s+(.+)$/.exec(line) ?? [];
    return seed === undefined ? [] : [{ seed: Number(seed), what }];
  });

const one = process.env["MOORING_SEED"];

describe("every seed that ever failed", () => {
  const observer = new CoverageObserver();
  const seeds = one === undefined ? newest(found) : [{ seed: Number(one), what: "asked for" }];

  for (const { seed, what } of seeds)
    test(`seed ${seed}: ${what}`, async () => {
      const { violations } = await runSeed(seed, { observer });

      expect(violations, `replay with: mooring sim --seed ${seed}`).toEqual([]);
    });

  test.skipIf(one !== undefined)("waits of all three programs and effects of acts were counted", () => {
    const { acts, effective, waits } = observer.coverage;
    const waited = new Set(Object.keys(waits).map((name) => name.split(" ", 1)[0]));

    expect(effective["add-app"]).toBe(acts["add-app"]);
    expect(effective["kill"]).toBeGreaterThan(0);
    expect([...waited].sort()).toEqual(["attacher", "controller", "node"]);
  });
});

describe("a run is the same", () => {
  const short = { durationMs: 30_000 };

  test("with logs, with waits and with somebody who counts", async () => {
    const alone = await runSeed(1, short);

    const logged = await runSeed(1, { ...short, logs: true, observer: new WaitLines() });
    const counted = await runSeed(1, { ...short, observer: new CoverageObserver() });

    expect(logged.lines.length).toBeGreaterThan(alone.lines.length);
    expect([logged.hash, counted.hash]).toEqual([alone.hash, alone.hash]);
    expect((await runSeed(2, short)).hash).not.toBe(alone.hash);
  });

  test("up to the first step that is left out", async () => {
    const whole = await runSeed(2, short);
    const last = whole.plan.length - 1;
    const leftOutAtMs = whole.plan[last]?.atMs ?? 0;

    const only = whole.plan.slice(0, last).map((_, index) => ({ index }));
    const part = await runSeed(2, { ...short, choice: { only } });

    const before = (lines: typeof whole.lines) => lines.filter(({ atMs }) => atMs < leftOutAtMs);
    expect(before(part.lines)).toEqual(before(whole.lines));
    expect(part.lines.some(({ who, atMs }) => who === "plan" && atMs === leftOutAtMs)).toBe(false);
  });
});
