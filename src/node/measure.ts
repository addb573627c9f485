import type { Clock } from "../base/clock.ts";
import type { Metrics } from "../base/metrics.ts";
import type { World } from "./world.ts";

/** Upstream's names and labels where upstream has the metric; `docs/reference/metrics.md` lists all. */
export interface Measure {
  /** Starts the clock of one operation; call the answer with how it ended. */
  operation(name: string, labels: { readonly plugin: string; readonly migrated: boolean }): Observe;
  /** From the wish of a pod to its mount. */
  mounted(plugin: string, tookMs: number): void;
  reconstructed(failed: boolean): void;
}

type Observe = (status: "success" | "fail-unknown") => void;

/** Upstream's, in seconds. */
const OPERATION_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];
/** From an instant driver to the 2 min of a deadline. */
const MOUNT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600];

export function createMeasure({
  clock,
  metrics,
  world,
}: {
  clock: Clock;
  metrics: Metrics;
  world: World;
}): Measure {
  const durations = metrics.histogram({
    name: "storage_operation_duration_seconds",
    help: "Steps of volumes, from their start to their end.",
    labels: ["volume_plugin", "operation_name", "status", "migrated"],
    buckets: OPERATION_BUCKETS,
  });
  const whole = metrics.histogram({
    name: "volume_operation_total_seconds",
    help: "From a pod's wish for a volume to its mount.",
    labels: ["plugin_name", "operation_name"],
    buckets: MOUNT_BUCKETS,
  });
  const attempts = metrics.counter({
    name: "reconstruct_volume_operations_total",
    help: "Volumes found on disk at the start.",
  });
  const failures = metrics.counter({
    name: "reconstruct_volume_operations_errors_total",
    help: "Volumes found on disk at the start that could not be made sense of.",
  });
  createGauges(metrics, { world, clock });
  return {
    operation(name, { plugin, migrated }) {
      const startedMs = clock.now();
      return (status) =>
        durations.observe((clock.now() - startedMs) / 1_000, {
          volume_plugin: plugin,
          operation_name: name,
          status,
          migrated: String(migrated),
        });
    },
    mounted: (plugin, tookMs) =>
      whole.observe(tookMs / 1_000, { plugin_name: plugin, operation_name: "overall_volume_mount" }),
    reconstructed(failed) {
      attempts.inc();
      if (failed) failures.inc();
    },
  };
}

function createGauges(metrics: Metrics, { world, clock }: { world: World; clock: Clock }): void {
  metrics.gauge({
    name: "volume_manager_total_volumes",
    help: "Volumes of pods, as they should be and as they are.",
    labels: ["plugin_name", "state"],
    collect(gauge) {
      gauge.reset();
      const counts = new Map<string, { plugin: string; state: string; count: number }>();
      const count = (plugin: string, state: string) => {
        const entry = counts.get(`${state} ${plugin}`) ?? { plugin, state, count: 0 };
        entry.count++;
        counts.set(`${state} ${plugin}`, entry);
      };
      for (const { plugin, wants, held } of world.volumes.values()) {
        for (const { spec } of wants.values()) count(plugin.metricName(spec), "desired_state_of_world");
        for (const { state, spec } of held?.mounts.values() ?? [])
          if (state === "mounted") count(plugin.metricName(spec), "actual_state_of_world");
      }
      for (const { plugin, state, count } of counts.values())
        gauge.set(count, { plugin_name: plugin, state });
    },
  });
  metrics.gauge({
    name: "mooring_node_volume_waiting_seconds",
    help: "The longest wait of a volume on this node, by what it waits for.",
    labels: ["reason"],
    collect(gauge) {
      gauge.reset();
      const longest = new Map<string, number>();
      for (const { waits } of world.volumes.values())
        for (const { reason, sinceMs } of waits.values())
          longest.set(reason, Math.max(longest.get(reason) ?? 0, clock.now() - sinceMs));
      for (const [reason, ms] of longest) gauge.set(ms / 1_000, { reason });
    },
  });
}
