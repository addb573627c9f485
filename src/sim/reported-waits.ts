import type { WaitingReason as AttacherReason } from "../attacher/waiting.ts";
import { attachmentOnlyName, isAttachmentOnly } from "../attach-detach/node-view.ts";
import type { WaitingReason as ControllerReason } from "../attach-detach/waiting.ts";
import type { WaitingReason as NodeReason } from "../node/waiting.ts";
import { volumeAttachmentName, type VolumeName } from "../volumes/names.ts";
import type { World } from "./world.ts";

/** What one program says that something waits for, in the terms of the simulated cluster. */
export interface ReportedWait<Reason extends string = string> {
  readonly process: string;
  readonly reason: Reason;
  /** What is said to have to change. */
  readonly object: { readonly kind: string; readonly name: string; readonly namespace?: string };
  readonly message: string;
  /** The storage system's handle; empty where the program cannot follow a pod to it. */
  readonly handle: string;
  readonly persistentVolume: string;
  /** Of the node that it is about. */
  readonly node: string;
  /** `namespace/name` of the pod that waits or leaves; empty where it is about the volume. */
  readonly pod: string;
  readonly podUid: string;
  readonly attachment: string;
  /** For how long it has been said, by the clock of the program. */
  readonly forMs: number;
  /** Until the time that it names; undefined where it names none. */
  readonly leftMs: number | undefined;
}

export type Reported =
  | ({ readonly who: "controller" } & ReportedWait<ControllerReason>)
  | ({ readonly who: "attacher" } & ReportedWait<AttacherReason>)
  | ({ readonly who: "node" } & ReportedWait<NodeReason>);

const latest = new WeakMap<World, { readonly atMs: number; readonly waits: readonly Reported[] }>();

/** What the programs that run say at this moment that they wait for. Asks nobody over a network; several may look at one moment. */
export function reportedWaits(world: World): readonly Reported[] {
  const { nowMs: atMs } = world.scheduler;
  const known = latest.get(world);
  if (known?.atMs === atMs) return known.waits;
  const waits = [...controllerWaits(world), ...attacherWaits(world), ...nodeWaits(world)];
  latest.set(world, { atMs, waits });
  return waits;
}

/** In one line, for people. */
export function waitLine({ process, handle, node, pod, reason, message }: Reported): string {
  const volume = [handle, node === process ? "" : `on ${node}`, pod === "" ? "" : `of ${pod}`];
  return `${process} waits with ${volume.filter((word) => word !== "").join(" ")}: ${reason}: ${message}`;
}

function controllerWaits(world: World): Reported[] {
  const found: Reported[] = [];
  for (const [process, current] of world.controllers) {
    const report = isRunning(world, process) ? current()?.report({ waitingOnly: true }) : undefined;
    if (report === undefined) continue;
    const said = { ...NOTHING, who: "controller", process } as const;
    for (const { volume, node, persistentVolume = "", waitingFor } of report.volumes)
      if (waitingFor !== undefined)
        found.push({
          ...{ ...said, node, persistentVolume, handle: handleOn(world, volume, node) },
          ...waitOf(waitingFor, report.time),
        });
    for (const { pod, node, waitingFor } of report.unresolved)
      found.push({ ...said, node, pod, ...waitOf(waitingFor, report.time) });
  }
  return found;
}

function attacherWaits(world: World): Reported[] {
  const page = isRunning(world, "attacher") ? world.attacherPage?.() : undefined;
  if (page === undefined) return [];
  const said = { ...NOTHING, who: "attacher", process: "attacher" } as const;
  return page.attachments.flatMap(({ volumeAttachment, node, persistentVolume = "", waitingFor }) => {
    if (waitingFor === undefined) return [];
    const recorded = world.objects.get("volumeattachments.storage.k8s.io", volumeAttachment)?.metadata
      .annotations?.["mooring.dev/volume-handle"];
    const volume = world.objects.get("persistentvolumes", persistentVolume);
    // An attach that has begun is about that disk, whatever became of the PersistentVolume.
    const handle = recorded ?? volume?.spec?.csi?.volumeHandle ?? "";
    const about = { attachment: volumeAttachment, node, persistentVolume, handle };
    return [{ ...said, ...about, ...waitOf(waitingFor, page.time) }];
  });
}

function nodeWaits(world: World): Reported[] {
  const found: Reported[] = [];
  for (const { name, agent, agentProcess } of world.nodes.values()) {
    const report = agentProcess.isRunning ? agent?.manager.report({ waitingOnly: true }) : undefined;
    for (const { volume, waitingFor, pods } of report?.volumes ?? []) {
      const said = { ...NOTHING, who: "node", process: name, node: name, handle: handleOf(volume) } as const;
      const add = (wait: Said | undefined, about: { pod?: string; podUid?: string }) => {
        if (wait !== undefined) found.push({ ...said, ...about, ...waitOf(wait, report?.time ?? "") });
      };
      add(waitingFor as Said | undefined, {});
      for (const { pod, uid, waitingFor: wait } of pods) add(wait as Said | undefined, { pod, podUid: uid });
    }
  }
  return found;
}

interface Said<Reason extends string = NodeReason> {
  readonly reason: Reason;
  readonly object: ReportedWait["object"];
  readonly since: string;
  readonly until?: string;
  readonly message: string;
}

/** Times are told by the wall clock of the process, which somebody may have set: only differences count. */
function waitOf<Reason extends string>(
  { reason, object, since, until, message }: Said<Reason>,
  time: string,
) {
  const nowMs = Date.parse(time);
  const leftMs = until === undefined ? undefined : Date.parse(until) - nowMs;
  return { reason, object, message, forMs: nowMs - Date.parse(since), leftMs };
}

const NOTHING = { handle: "", persistentVolume: "", node: "", pod: "", podUid: "", attachment: "" };

function isRunning(world: World, process: string): boolean {
  return world.processes.get(process)?.isRunning === true;
}

/** What is known by its VolumeAttachment alone has the disk of whose name on that node that one's is made. */
function handleOn({ storages }: World, volume: string, node: string): string {
  if (!isAttachmentOnly(volume as VolumeName)) return handleOf(volume);
  const named = [...storages.volumes.values()].find(
    ({ driver, handle }) =>
      attachmentOnlyName(volumeAttachmentName({ driver, volumeHandle: handle }, node)) === volume,
  );
  return named?.handle ?? volume;
}

function handleOf(volume: string): string {
  return volume.slice(volume.indexOf("^") + 1);
}
