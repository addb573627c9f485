import type { Gauge, Metrics } from "../../base/metrics.ts";
import type { VolumeStats } from "../plugin.ts";
import type { ConditionedStats } from "../plugins/stats.ts";

/** The last answer about a claim's volume. */
export interface ClaimStats {
  readonly namespace: string;
  readonly claim: string;
  readonly stats: ConditionedStats;
}

type ClaimLabel = "namespace" | "persistentvolumeclaim";

/** Upstream's, in seconds: from a local statfs to a driver's deadline. */
const COLLECTION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Upstream's gauges of claims, read from the last answers at every scrape; what is not known is not shown. */
export function createStatsMetrics(metrics: Metrics, latest: ReadonlyMap<string, ClaimStats>) {
  const gauge = (name: string, help: string, valueOf: (stats: ConditionedStats) => number | undefined) =>
    metrics.gauge<ClaimLabel>({
      name,
      help,
      labels: ["namespace", "persistentvolumeclaim"],
      collect: (into) => show(into, latest, valueOf),
    });
  const field = (name: keyof VolumeStats) => (stats: ConditionedStats) => stats[name];
  gauge("kubelet_volume_stats_capacity_bytes", "Bytes that the volume has.", field("capacityBytes"));
  gauge("kubelet_volume_stats_available_bytes", "Bytes that are free in it.", field("availableBytes"));
  gauge("kubelet_volume_stats_used_bytes", "Bytes that are taken in it.", field("usedBytes"));
  gauge("kubelet_volume_stats_inodes", "Inodes that the volume has.", field("inodes"));
  gauge("kubelet_volume_stats_inodes_free", "Inodes that are free in it.", field("inodesFree"));
  gauge("kubelet_volume_stats_inodes_used", "Inodes that are taken in it.", field("inodesUsed"));
  gauge(
    "kubelet_volume_stats_health_status_abnormal",
    "1 where the driver says that the volume is not well, with the gate CSIVolumeHealth.",
    ({ condition }) => (condition === undefined ? undefined : Number(condition.abnormal)),
  );
  const durations = metrics.histogram({
    name: "kubelet_volume_metric_collection_duration_seconds",
    help: "How long it took to ask about one volume.",
    labels: ["metric_source"],
    buckets: COLLECTION_BUCKETS,
  });
  return {
    collected: (source: string, tookMs: number) =>
      durations.observe(tookMs / 1_000, { metric_source: source }),
  };
}

function show(
  gauge: Gauge<ClaimLabel>,
  latest: ReadonlyMap<string, ClaimStats>,
  valueOf: (stats: ConditionedStats) => number | undefined,
): void {
  gauge.reset();
  for (const { namespace, claim, stats } of latest.values()) {
    const value = valueOf(stats);
    if (value !== undefined) gauge.set(value, { namespace, persistentvolumeclaim: claim });
  }
}
