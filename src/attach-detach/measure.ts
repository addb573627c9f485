import type { Clock } from "../base/clock.ts";
import type { Gauge, Metrics, MetricSpec } from "../base/metrics.ts";
import { endPhase, isLastPhase, type Phase } from "./phases.ts";
import type { Tally } from "./tally.ts";
import type { WaitingReason } from "./waiting.ts";
import type { Placement } from "./world.ts";

/** Upstream's names and labels where upstream has the metric; `docs/reference/metrics.md` lists all. */

export interface Measure {
  /** Starts the clock of one operation; call the answer with how it ended. */
  operation(name: string, labels: { readonly plugin: string; readonly migrated: boolean }): Observe;
  forced(reason: "timeout" | "out-of-service"): void;
  endPhase(placement: Placement, phase: Phase): void;
  statusWritten(): void;
}

type Observe = (status: "success" | "fail-unknown") => void;

/** Upstream's, in seconds. */
const OPERATION_BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];
/** From the 5 ms of a reaction to the 6 min of a force and beyond. */
const PHASE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 360, 900];

export interface MeasureDeps {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly tally: Tally;
  /** Placements and unresolved volumes that wait, with the reason and since when. */
  readonly waits: () => Iterable<{ readonly reason: WaitingReason; readonly sinceMs: number }>;
  /** State gauges stay away until stock was taken. */
  readonly populated: () => boolean;
}

export function createMeasure(deps: MeasureDeps): Measure {
  const { clock, metrics } = deps;
  createGauges(deps);
  const durations = metrics.histogram({
    name: "storage_operation_duration_seconds",
    help: "Attach and detach operations, from their start to their end.",
    labels: ["volume_plugin", "operation_name", "status", "migrated"],
    buckets: OPERATION_BUCKETS,
  });
  const forces = metrics.counter({
    name: "attach_detach_controller_attachdetach_controller_forced_detaches",
    help: "Detaches of volumes that their node said it uses, by the evidence.",
    labels: ["reason"],
  });
  const phases = metrics.histogram({
    name: "mooring_volume_phase_seconds",
    help: "Where the time of attaches (create, attach, report) and detaches (unmount, unlist, detach) goes.",
    labels: ["operation", "phase"],
    buckets: PHASE_BUCKETS,
  });
  const whole = metrics.histogram({
    name: "mooring_volume_operation_seconds",
    help: "From wanted to listed by the node, and from unwanted to detached: the sum of the phases.",
    labels: ["operation"],
    buckets: PHASE_BUCKETS,
  });
  const writes = metrics.counter({
    name: "mooring_node_status_writes_total",
    help: "Writes of a node's volumesAttached.",
  });
  return {
    operation(name, { plugin, migrated }) {
      const startedMs = clock.now();
      const labels = { volume_plugin: plugin, operation_name: name, migrated: String(migrated) };
      return (status) => durations.observe((clock.now() - startedMs) / 1_000, { ...labels, status });
    },
    forced: (reason) => forces.inc({ reason }),
    endPhase(placement, phase) {
      const { timing } = placement;
      if (timing === undefined) return;
      const { operation, startedMs } = timing;
      const nowMs = clock.now();
      for (const taken of endPhase(timing, phase, nowMs))
        phases.observe(taken.tookMs / 1_000, { operation, phase: taken.phase });
      if (!isLastPhase(phase)) return;
      whole.observe((nowMs - startedMs) / 1_000, { operation });
      placement.timing = undefined;
    },
    statusWritten: () => writes.inc(),
  };
}

/** Asked at a scrape; nothing before stock was taken. */
function createGauges({ metrics, tally, waits, clock, populated }: MeasureDeps): void {
  function gauge<L extends string>(spec: MetricSpec<L>, collect: (gauge: Gauge<L>) => void): void {
    metrics.gauge({
      ...spec,
      collect(asked) {
        asked.reset();
        if (populated()) collect(asked);
      },
    });
  }
  gauge(
    {
      name: "attachdetach_controller_total_volumes",
      help: "Volumes on nodes, as wanted and as attached.",
      labels: ["plugin_name", "state"],
    },
    (total) => {
      setAll(total, tally.desired, "desired_state_of_world");
      setAll(total, tally.actual, "actual_state_of_world");
    },
  );
  gauge(
    {
      name: "storage_count_attachable_volumes_in_use",
      help: "Volumes that pods of a node refer to.",
      labels: ["node", "volume_plugin"],
    },
    (inUse) => {
      for (const [node, plugins] of tally.inUse)
        for (const [plugin, count] of plugins) inUse.set(count, { node, volume_plugin: plugin });
    },
  );
  gauge(
    {
      name: "mooring_volume_waiting_seconds",
      help: "How long the longest waiting volume has waited, by what it waits for.",
      labels: ["reason"],
    },
    (oldest) => {
      for (const [reason, { sinceMs }] of waitsByReason(waits()))
        oldest.set((clock.now() - sinceMs) / 1_000, { reason });
    },
  );
  gauge(
    {
      name: "mooring_volumes_waiting",
      help: "How many volumes wait, by what they wait for.",
      labels: ["reason"],
    },
    (waiting) => {
      for (const [reason, { count }] of waitsByReason(waits())) waiting.set(count, { reason });
    },
  );
}

function setAll(
  gauge: Gauge<"plugin_name" | "state">,
  counts: ReadonlyMap<string, number>,
  state: string,
): void {
  for (const [plugin, count] of counts) gauge.set(count, { plugin_name: plugin, state });
}

function waitsByReason(
  waits: ReturnType<MeasureDeps["waits"]>,
): Map<WaitingReason, { sinceMs: number; count: number }> {
  const byReason = new Map<WaitingReason, { sinceMs: number; count: number }>();
  for (const { reason, sinceMs } of waits) {
    const known = byReason.get(reason);
    byReason.set(reason, {
      sinceMs: Math.min(sinceMs, known?.sinceMs ?? Infinity),
      count: (known?.count ?? 0) + 1,
    });
  }
  return byReason;
}
