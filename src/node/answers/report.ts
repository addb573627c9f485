import { podRef } from "../populate.ts";
import { toKey } from "../../kube/object.ts";
import type { Context } from "../context.ts";
import type { Progress } from "../progress.ts";
import type { WaitingFor } from "../waiting.ts";
import type { VolumeState } from "../world.ts";

/** What `/debug/volumes` answers on a node: every volume that is wanted or here, and why it is not settled. */
export interface NodeReport {
  readonly time: string;
  readonly node: string;
  /** False until disk, pods and the node's status were read. */
  readonly synced: boolean;
  /** What keeps the agent from starting its work; it goes on trying. */
  readonly problem?: string;
  readonly volumes: readonly NodeVolumeReport[];
  readonly unresolved: readonly UnresolvedReport[];
  /** Directories of volumes that no plugin here serves; they are left alone. */
  readonly strays: readonly string[];
}

export interface NodeVolumeReport {
  readonly volume: string;
  readonly plugin: string;
  readonly device: string;
  readonly inUseReported: boolean;
  readonly pods: readonly {
    readonly pod: string;
    readonly uid: string;
    readonly wanted: boolean;
    readonly state: "not-mounted" | "uncertain" | "mounted";
    readonly waitingFor?: WaitingReport;
  }[];
  readonly running: readonly { readonly operation: string; readonly since: string }[];
  readonly waitingFor?: WaitingReport;
}

export interface WaitingReport {
  readonly reason: string;
  readonly object: { readonly kind: string; readonly name: string; readonly namespace?: string };
  readonly since: string;
  readonly until?: string;
  readonly message: string;
}

export interface UnresolvedReport {
  readonly pod: string;
  readonly volume: string;
  readonly since: string;
  readonly message: string;
}

export interface ReportFilter {
  /** Of the volumes only those with which something waits. */
  readonly waitingOnly?: boolean;
}

export function createReport(
  context: Context,
  { synced, problem, found }: Pick<Progress, "synced" | "problem" | "found">,
  { waitingOnly = false }: ReportFilter = {},
): NodeReport {
  const { clock, world, nodeName } = context;
  const toTime = (ms: number) => new Date(clock.wall().getTime() + ms - clock.now()).toISOString();
  const unresolved: UnresolvedReport[] = [];
  for (const { pod, references } of world.pods.values())
    for (const [volume, reference] of references)
      if (reference.kind === "unresolved")
        unresolved.push({
          pod: toKey(podRef(pod)),
          volume,
          since: toTime(reference.sinceMs),
          message: reference.message,
        });
  const volumes = [...world.volumes.values()]
    .filter(({ waits }) => !waitingOnly || waits.size > 0)
    .map((volume) => describe(context, volume, toTime));
  const time = toTime(clock.now());
  return {
    time,
    node: nodeName,
    synced,
    ...(problem !== undefined && { problem }),
    volumes,
    unresolved,
    strays: found?.strays ?? [],
  };
}

function describe(
  { inUse, world }: Context,
  volume: VolumeState,
  toTime: (ms: number) => string,
): NodeVolumeReport {
  const { name, plugin, wants, held, waits, running } = volume;
  const uids = [...new Set([...wants.keys(), ...(held?.mounts.keys() ?? [])])].sort();
  const own = waits.get("");
  return {
    volume: name,
    plugin: plugin.name,
    device: held?.device ?? "not-attached",
    inUseReported: inUse.isReported(name),
    pods: uids.map((uid) => {
      const known = wants.get(uid)?.pod ?? world.pods.get(uid)?.pod;
      const wait = waits.get(uid);
      return {
        pod: known ? toKey(podRef(known)) : "",
        uid,
        wanted: wants.has(uid),
        state: held?.mounts.get(uid)?.state ?? "not-mounted",
        ...(wait && { waitingFor: toReport(wait, toTime) }),
      };
    }),
    running: running.map(({ operation, sinceMs }) => ({ operation, since: toTime(sinceMs) })),
    ...(own && { waitingFor: toReport(own, toTime) }),
  };
}

function toReport(
  { reason, object, sinceMs, untilMs, message }: WaitingFor,
  toTime: (ms: number) => string,
): WaitingReport {
  return {
    reason,
    object,
    since: toTime(sinceMs),
    ...(untilMs !== undefined && { until: toTime(untilMs) }),
    message,
  };
}
