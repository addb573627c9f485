import { expect, test } from "vitest";
import type { Metrics } from "../base/metrics.ts";
import { noMetrics } from "../base/metrics.ts";
import { createMeasure } from "./measure.ts";
import { startTiming, type Phase } from "./phases.ts";
import { placementWith } from "./stage.testing.ts";
import { Tally } from "./tally.ts";
import { World } from "./world.ts";

/** Histograms that add up what they are given. */
function given(operation: "attach" | "detach") {
  const sums = new Map<string, number>();
  const metrics: Metrics = {
    ...noMetrics,
    histogram: ({ name }) => ({
      observe: (value, labels) => {
        const { phase } = (labels ?? {}) as { phase?: string };
        for (const key of [name, ...(phase ? [phase] : [])]) sums.set(key, (sums.get(key) ?? 0) + value);
      },
    }),
  };
  let nowMs = 1_000;
  const clock = { now: () => nowMs } as Parameters<typeof createMeasure>[0]["clock"];
  const tally = new Tally({ bySpec: () => undefined });
  const measure = createMeasure({ clock, metrics, tally, waits: () => [], populated: () => true });
  const placement = placementWith(new World());
  placement.timing = startTiming(operation, nowMs);
  const end = (phase: Phase, afterMs: number) => {
    nowMs += afterMs;
    measure.endPhase(placement, phase);
  };
  return { end, sums, placement };
}

test("the phases of an attach add up to its wall time", () => {
  const { end, sums, placement } = given("attach");

  end("create", 20);
  end("attach", 300);
  end("attach", 7); // said twice: the first time counts
  end("report", 10);

  expect([...sums]).toEqual([
    ["mooring_volume_phase_seconds", 0.337],
    ["create", 0.02],
    ["attach", 0.3],
    ["report", 0.017],
    ["mooring_volume_operation_seconds", 0.337],
  ]);
  expect(placement.timing).toBeUndefined();
});

test("a phase that was skipped took no time", () => {
  const { end, sums } = given("detach");

  end("unlist", 64); // nothing was mounted
  end("detach", 128);

  expect(sums.get("unmount")).toBe(0.064);
  expect(sums.get("unlist")).toBe(0);
  expect(sums.get("mooring_volume_operation_seconds")).toBeCloseTo(
    sums.get("mooring_volume_phase_seconds") ?? 0,
    12,
  );
});
