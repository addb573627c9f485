import type { Metrics } from "../../base/metrics.ts";
import type { PodPlan } from "./plan.ts";
import type { Blocker } from "./view.ts";
import type { Waits } from "./waits.ts";

const BLOCKERS: readonly Blocker[] = ["node", "room", "pod", "volume", "class"];

export function createSchedulerMetrics(
  metrics: Metrics,
  waits: Waits,
): { planned(kind: PodPlan["kind"]): void } {
  const plans = metrics.counter({
    name: "mooring_scheduler_plans_total",
    help: "Looks at a pod without a node, by what came of them.",
    labels: ["result"],
  });
  metrics.gauge({
    name: "mooring_scheduler_waiting",
    help: "Pods without a node by what may help them; a pod counts under each.",
    labels: ["until"],
    collect: (gauge) => {
      for (const blocker of BLOCKERS) gauge.set(waits.count(blocker), { until: blocker });
    },
  });
  return { planned: (kind) => plans.inc({ result: kind }) };
}
