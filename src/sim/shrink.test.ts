import { expect, test } from "vitest";
import { parseSteps, renderSteps, type ChosenStep } from "./choice.ts";
import type { Plan } from "./plan.ts";
import { shrink, type Attempt } from "./shrink.ts";

const plan: Plan = Array.from({ length: 40 }, (_, at) => ({
  atMs: at * 1_000,
  act: { kind: "power-off", node: "node-1", forMs: 8_000, taint: true },
}));
const all = plan.map((_, index) => ({ index }));
const failing = { plan, steps: all, violation: "writers: two", violatedAtMs: 35_000, durationMs: 600_000 };

/** Fails where these steps are, some of them with at least that long a time. */
function failsWith(needed: readonly number[], { forMs = 0, taint = false } = {}) {
  const tried: (readonly ChosenStep[])[] = [];
  const run = async (steps: readonly ChosenStep[]): Promise<Attempt> => {
    tried.push(steps);
    const byIndex = new Map(steps.map((step) => [step.index, step]));
    const isThere = (index: number) => {
      const step = byIndex.get(index);
      return (
        step !== undefined &&
        Number(step.changes?.["forMs"] ?? 8_000) >= forMs &&
        (!taint || step.changes?.["taint"] !== false)
      );
    };
    return needed.every(isThere) ? { violation: "writers: others", violatedAtMs: 35_000 } : {};
  };
  return { run, tried };
}

let now = 0;
const clock = { now: () => now };

test("a plan is cut down to the steps it needs, with their times as short as they may be", async () => {
  const { run, tried } = failsWith([3, 17, 31], { forMs: 700, taint: true });

  const shrunk = await shrink({ clock, run }, failing);

  expect(renderSteps(shrunk.steps)).toBe("3:forMs=800,17:forMs=800,31:forMs=800");
  expect(shrunk.isMinimal).toBe(true);
  expect(shrunk.violation).toBe("writers: others");
  // What came after the failure goes in one run.
  expect(tried[0]?.map(({ index }) => index)).toEqual(all.slice(0, 36).map(({ index }) => index));
  expect(shrunk.runs).toBeLessThan(80);
});

test("what is not needed of an act goes too", async () => {
  const { run } = failsWith([5]);

  const { steps } = await shrink({ clock, run }, failing);

  expect(renderSteps(steps)).toBe("5:forMs=100:taint=false");
  expect(parseSteps(renderSteps(steps))).toEqual(steps);
});

test("another checker's failure is another failure", async () => {
  const run = async (): Promise<Attempt> => ({ violation: "leaks: d1", violatedAtMs: 1 });

  const { steps } = await shrink({ clock, run }, failing, { runsMax: 500 });

  expect(steps).toEqual(all);
});

test("it ends after so many runs, and after so much time, with the best so far", async () => {
  const { run } = failsWith([3, 17, 31]);

  const byRuns = await shrink({ clock, run }, failing, { runsMax: 5 });
  const byTime = await shrink({ clock, run: (steps) => ((now += 1_000), run(steps)) }, failing, {
    forMs: 6_000,
  });

  expect([byRuns.runs, byRuns.isMinimal]).toEqual([5, false]);
  expect([byTime.runs, byTime.isMinimal]).toEqual([6, false]);
  expect(byRuns.steps.length).toBeLessThan(40);
});
