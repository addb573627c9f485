import { join } from "node:path";
import { jittered } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Metrics } from "../../base/metrics.ts";
import type { Random } from "../../base/random.ts";
import { pods as podResource, type Pod } from "../../kube/api/pod.ts";
import { referenceTo, type EventRecorder } from "../../kube/events/events.ts";
import { claimUseOf } from "../populate.ts";
import type { NodePlugin } from "../plugin.ts";
import type { PluginTable } from "../plugin-table.ts";
import type { ConditionedStats } from "../plugins/stats.ts";
import type { MountedVolume, VolumeQueries } from "./queries.ts";
import { createStatsMetrics, type ClaimStats } from "./volume-stats-metrics.ts";

/**
 * How full the volumes of claims are, and with the gate CSIVolumeHealth how they do: asked once a period and kept for
 * whoever scrapes. A claim that several pods share is asked about once. Each driver has a round of its own: one that
 * hangs holds up its own volumes (30 s each, two at a time), and no other's.
 */
export interface VolumeStatsLoop {
  run(signal: AbortSignal): Promise<void>;
}

export interface VolumeStatsDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly events: Pick<EventRecorder, "record">;
  readonly queries: Pick<VolumeQueries, "getMountedVolumesForPod">;
  readonly pods: () => Iterable<Pod>;
  readonly plugins: PluginTable;
}

/** Calls to one driver at once. */
const AT_ONCE = 2;
/** Nodes that were started together do not ask one backend together. */
const JITTER = 0.1;

export function createVolumeStats(
  deps: VolumeStatsDeps,
  { periodMs = 60_000 }: { readonly periodMs?: number } = {},
): VolumeStatsLoop {
  const { clock, random, metrics } = deps;
  /** By claim, as of its last answer. Bound: claims mounted on this node. */
  const latest = new Map<string, ClaimStats>();
  /** Rounds under way, by driver. */
  const busy = new Map<string, Promise<void>>();
  const measure = createStatsMetrics(metrics, latest);

  function look(signal: AbortSignal): void {
    const wanted = mountedClaims(deps);
    for (const key of latest.keys()) if (!wanted.has(key)) latest.delete(key);
    for (const source of new Set([...wanted.values()].map((claim) => claim.source))) {
      if (busy.has(source)) continue;
      const claims = [...wanted.values()].filter((claim) => claim.source === source);
      const round = askAll(claims, signal).finally(() => busy.delete(source));
      busy.set(source, round);
    }
  }

  async function askAll(claims: readonly MountedClaim[], signal: AbortSignal): Promise<void> {
    const left = claims.values();
    const worker = async () => {
      for (const claim of left) if (!signal.aborted) await ask(claim, signal);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  async function ask(claim: MountedClaim, signal: AbortSignal): Promise<void> {
    const { plugin, mounted, podUid, key, source } = claim;
    const startedMs = clock.now();
    try {
      const volumePath = pathOf(claim);
      const stats: ConditionedStats | undefined = await plugin.stats?.({
        spec: mounted.spec,
        podUid,
        volumePath,
        signal,
      });
      if (stats === undefined) return;
      measure.collected(source, clock.now() - startedMs);
      tellCondition(claim, stats, latest.get(key)?.stats);
      latest.set(key, { namespace: claim.namespace, claim: claim.name, stats });
    } catch (error) {
      // The last answer stays: a driver that is restarted should not make a volume look empty.
      if (!signal.aborted) deps.log.debug("volume stats not read", { claim: key, error });
    }
  }

  /** Once a change: a volume that stays ill is told about when its illness is another one. */
  function tellCondition(
    { pod, mounted }: MountedClaim,
    now: ConditionedStats,
    before?: ConditionedStats,
  ): void {
    const { condition } = now;
    if (!condition?.abnormal) return;
    if (before?.condition?.abnormal && before.condition.message === condition.message) return;
    deps.events.record({
      ref: referenceTo(podResource, pod),
      type: "Warning",
      reason: "VolumeConditionAbnormal",
      message: `Volume ${mounted.specName}: ${condition.message}`,
    });
  }

  return {
    async run(signal) {
      try {
        for (;;) {
          await clock.sleep(jittered(periodMs, JITTER, random), signal);
          look(signal);
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      await Promise.all(busy.values());
    },
  };
}

interface MountedClaim {
  /** `namespace/name` of the claim. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly pod: Pod;
  readonly podUid: string;
  readonly mounted: MountedVolume;
  readonly plugin: NodePlugin;
  /** The driver, or how its kind is measured: upstream's `metric_source`. */
  readonly source: string;
}

function mountedClaims({ pods, queries, plugins }: VolumeStatsDeps): Map<string, MountedClaim> {
  const found = new Map<string, MountedClaim>();
  for (const pod of pods()) {
    const podUid = pod.metadata.uid ?? "";
    const mountedHere = queries.getMountedVolumesForPod(podUid);
    if (mountedHere.size === 0) continue;
    for (const volume of pod.spec?.volumes ?? []) {
      const claim = claimUseOf(pod, volume);
      const mounted = mountedHere.get(volume.name);
      if (!claim || !mounted || found.has(claim.key)) continue;
      const match = plugins.bySpec(mounted.spec);
      if (match.kind !== "found" || !match.plugin.stats) continue;
      const { namespace, name, key } = claim;
      const source = sourceOf(match.plugin, mounted);
      found.set(key, { key, namespace, name, pod, podUid, mounted, plugin: match.plugin, source });
    }
  }
  return found;
}

function sourceOf(plugin: NodePlugin, { spec, mode }: MountedVolume): string {
  const [, driver] = plugin.metricName(spec).split(":");
  if (driver !== undefined) return driver;
  return mode === "Block" ? "block" : "statfs";
}

/** A raw device is asked about by the file that this pod has of it below the plugin. */
function pathOf({ plugin, mounted: { spec, mode, path }, podUid }: MountedClaim): string {
  return mode === "Block" && plugin.block ? join(plugin.block.globalMapPath(spec), podUid) : path;
}
