import { mayMultiAttach } from "../volumes/access.ts";
import type { OperationKey } from "../operations/key.ts";
import type { PendingOperations } from "../operations/pending.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";
import type { PluginRegistry } from "../volumes/registry.ts";
import type { WorkQueue } from "../kube/workqueue/work-queue.ts";
import type { ObjectKey } from "../kube/object.ts";
import type { Node } from "../kube/api/node.ts";
import type { NodeName } from "../volumes/names.ts";
import { CSI_PLUGIN } from "../volumes/names.ts";
import type { VolumeSpec } from "../volumes/spec.ts";
import type { AttachmentWatch } from "./attachment-watch.ts";
import type { AttachDetachDeps } from "./controller.ts";
import type { Doubts } from "./doubts.ts";
import type { ForeignAttachments } from "./foreign.ts";
import type { Measure } from "./measure.ts";
import { isAttachmentOnly } from "./node-view.ts";
import type { AttachDetachOptions } from "./options.ts";
import type { Tally } from "./tally.ts";
import {
  placementKey,
  type Busy,
  type NodeState,
  type Placement,
  type PlacementKey,
  type VolumeState,
  type World,
} from "./world.ts";

/** What the parts of one term share. */
export interface Context extends AttachDetachDeps {
  readonly options: AttachDetachOptions;
  readonly world: World;
  readonly tally: Tally;
  readonly registry: PluginRegistry;
  readonly csi: AttachablePlugin;
  readonly operations: PendingOperations;
  readonly watch: AttachmentWatch;
  readonly doubts: Doubts;
  /** VolumeAttachments that are not ours, or that nobody can read. */
  readonly foreign: ForeignAttachments;
  readonly measure: Measure;
  /** Placements to look at. */
  readonly placements: WorkQueue<PlacementKey>;
  /** Nodes whose `volumesAttached` may have to be written. */
  readonly nodeStatus: WorkQueue<NodeName>;
  /** Nodes whose new Node object has not said yet which volumes it uses, by when it will have had the time to. */
  readonly silentNodes: WorkQueue<NodeName>;
  /** Claims that changed. */
  readonly claims: WorkQueue<ObjectKey>;
  /** Operations under way, and the promise of their end. */
  readonly running: Map<Busy, Promise<void>>;
  /** Reads of nodes about to be sent, by `live-node.ts`; each is here for one turn. */
  readonly liveReads: Map<NodeName, Promise<Node | undefined>>;
  /** Stock is taken. Until then nothing is looked at: what is not known to be wanted would look unwanted. */
  readonly active: () => boolean;
}

export function mark({ placements, active }: Context, placement: Placement): void {
  if (active()) placements.add(placementKey(placement));
}

/**
 * What happened here may be what another node waits for. With a shared volume nobody does, unless another PersistentVolume
 * of the same disk is not shared: whoever waits because of that says so.
 */
export function markVolume(context: Context, placement: Placement): void {
  mark(context, placement);
  for (const waiter of context.world.waiters.onVolume(placement.volume.name)) mark(context, waiter);
  if (!isExclusive(placement)) return;
  for (const other of placement.volume.placements) if (other !== placement) mark(context, other);
}

/** Placements of a node that are on their way somewhere. */
export function markUnsettled(context: Context, { placements }: NodeState): void {
  for (const placement of placements.values()) if (!isSettled(placement)) mark(context, placement);
}

/** Attached, wanted, complete, and said to wait for nothing: most placements, most of the time. */
export function isSettled({ want, hold, busy, timing, waiting }: Placement): boolean {
  return want !== undefined && hold?.confirmed === true && hold.listed && !busy && !timing && !waiting;
}

/** Whether only one node may have it. What is known of it on any node counts; of what nothing is known, it is not. */
export function isExclusive({ want, hold, volume }: Placement): boolean {
  const spec = want?.spec ?? hold?.spec ?? specOf(volume);
  return spec !== undefined && !mayMultiAttach(spec);
}

function specOf({ placements }: VolumeState): VolumeSpec | undefined {
  for (const { want, hold } of placements) {
    const spec = want?.spec ?? hold?.spec;
    if (spec) return spec;
  }
  return undefined;
}

/** What no other operation may overlap with: the whole volume, or its part on this node. */
export function operationKey(placement: Placement): OperationKey {
  const volume = placement.volume.name;
  return isExclusive(placement) ? { volume } : { volume, node: placement.node.name };
}

/** Who can detach it. A volume that became non-attachable is still served by its plugin. */
export function pluginOf(
  { registry, csi }: Context,
  { volume }: Placement,
): { plugin: AttachablePlugin; pluginVolume: string } | undefined {
  if (isAttachmentOnly(volume.name)) return { plugin: csi, pluginVolume: volume.name };
  const found = registry.byVolume(volume.name);
  return found?.plugin.name === CSI_PLUGIN && !found.pluginVolume.includes("^") ? undefined : found;
}
