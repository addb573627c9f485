import { toKey } from "../kube/object.ts";
import { specName } from "../volumes/spec.ts";
import type { Pod } from "../kube/api/pod.ts";
import { attachmentOf } from "./attachments.ts";
import type { Context } from "./context.ts";
import { isSurelyHeld } from "./holders.ts";
import { isMounted, listsVolume } from "./node-view.ts";
import type { ReportFilter, UnresolvedReport, VolumeReport, VolumesReport, WaitingReport } from "./report.ts";
import { isFrozen, type WaitingFor } from "./waiting.ts";
import type { Placement, Unresolved } from "./world.ts";

/** The state of the world in words and numbers, for people and for `mooring why`. */
export function createReport(
  context: Context,
  { active, filter }: { readonly active: boolean; readonly filter: ReportFilter },
): VolumesReport {
  const limit = filter.limit ?? Infinity;
  const volumes: VolumeReport[] = [];
  for (const placement of candidates(context, filter)) {
    if (volumes.length >= limit) break;
    if (matches(placement, filter)) volumes.push(reportPlacement(context, placement));
  }
  const unresolved: UnresolvedReport[] = [];
  for (const node of context.world.nodes.values())
    for (const question of node.unresolved)
      if (unresolved.length < limit && asked(question, node.name, filter))
        unresolved.push(reportQuestion(context, question, node.name));
  return { time: context.clock.wall().toISOString(), active, volumes, unresolved };
}

/** By key where the filter gives one; a walk otherwise. */
function candidates({ world }: Context, { volume, node }: ReportFilter): Iterable<Placement> {
  if (volume !== undefined) return world.volumes.get(volume as never)?.placements ?? [];
  if (node !== undefined) return world.nodes.get(node as never)?.placements.values() ?? [];
  return world.placements();
}

function matches({ want, waiting, node }: Placement, filter: ReportFilter): boolean {
  if (filter.node !== undefined && node.name !== filter.node) return false;
  if (filter.waitingOnly && waiting === undefined) return false;
  return filter.pod === undefined || (want?.pods.some((pod) => podKey(pod) === filter.pod) ?? false);
}

function asked({ pod }: Unresolved, node: string, filter: ReportFilter): boolean {
  if (filter.volume !== undefined) return false;
  if (filter.node !== undefined && filter.node !== node) return false;
  return filter.pod === undefined || filter.pod === podKey(pod);
}

function reportPlacement(context: Context, placement: Placement): VolumeReport {
  const { volume, node, want, hold, waiting } = placement;
  const spec = want?.spec ?? hold?.spec;
  const attachment = attachmentOf(context, placement)?.metadata.name;
  return {
    volume: volume.name,
    ...(spec?.kind === "persistent" && { persistentVolume: specName(spec) }),
    node: node.name,
    wantedBy: (want?.pods ?? []).map(podKey),
    state: stateOf(placement),
    listed: listsVolume(node.node, volume.name),
    mounted: (hold !== undefined || placement.foreign.length > 0) && isMounted(placement),
    ...(attachment !== undefined && { volumeAttachment: attachment }),
    ...(placement.foreign.length > 0 && { foreignAttachments: placement.foreign.map(({ name }) => name) }),
    ...(waiting && { waitingFor: reportWait(context, waiting) }),
  };
}

/** What somebody else attached is attached. */
function stateOf(placement: Placement): VolumeReport["state"] {
  const { busy, hold, foreign } = placement;
  if (busy) return busy.operation === "volume_attach" ? "attaching" : "detaching";
  if (hold) return hold.confirmed ? "attached" : "uncertain";
  if (foreign.length === 0) return "detached";
  return isSurelyHeld(placement) ? "attached" : "uncertain";
}

function reportQuestion(context: Context, question: Unresolved, node: string): UnresolvedReport {
  return {
    pod: podKey(question.pod),
    volume: question.volume,
    node,
    waitingFor: reportWait(context, questionWait(question)),
  };
}

/** A volume that cannot be followed, as something that waits. */
export function questionWait({ resolution, sinceMs }: Unresolved): WaitingFor {
  const { why, claim, persistentVolume, message } = resolution;
  const [namespace, name] = (claim ?? "").split("/");
  const object =
    persistentVolume !== undefined
      ? ({ kind: "PersistentVolume", name: persistentVolume } as const)
      : ({ kind: "PersistentVolumeClaim", name: name ?? "", namespace: namespace ?? "" } as const);
  return { reason: why, object, sinceMs, message };
}

function reportWait({ clock }: Context, waiting: WaitingFor): WaitingReport {
  const { reason, object, sinceMs, untilMs, message } = waiting;
  const at = (ms: number) => new Date(clock.wall().getTime() + ms - clock.now()).toISOString();
  return {
    reason,
    frozen: isFrozen(waiting),
    object,
    since: at(sinceMs),
    ...(untilMs !== undefined && { until: at(untilMs) }),
    message,
  };
}

function podKey({ metadata }: Pod): string {
  return toKey({ name: metadata.name ?? "", namespace: metadata.namespace });
}
