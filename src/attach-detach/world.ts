import type { Node } from "../kube/api/node.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { ObjectKey } from "../kube/object.ts";
import type { NodeName, VolumeName } from "../volumes/names.ts";
import type { Resolution } from "../volumes/resolve.ts";
import type { VolumeSpec } from "../volumes/spec.ts";
import type { Timing } from "./phases.ts";
import { Waiters } from "./waiters.ts";
import type { WaitingFor } from "./waiting.ts";

/**
 * Everything known about which volume belongs on which node. The unit is a placement: one volume on one node, wanted
 * there, attached there, or both. `desired.ts` writes what is wanted, `actual.ts` what is attached, `node-view.ts`
 * what nodes say; `plan.ts` reads one placement and says what to do.
 *
 * A placement is found by node and volume in O(1), the placements of a volume and of a node without a scan.
 * 1,000,000 of them take about 600 MB.
 */
export class World {
  readonly volumes = new Map<VolumeName, VolumeState>();
  readonly nodes = new Map<NodeName, NodeState>();
  /** By uid. */
  readonly pods = new Map<string, PodRecord>();
  readonly waiters = new Waiters();
  /** Attached, or perhaps, and no pod wants it; kept by `noteUnwanted`. */
  readonly unwanted = new Set<Placement>();
  readonly #onForgotten: (volume: VolumeName) => void;

  /** `onForgotten` hears of volumes that nobody wants and nothing holds any more. */
  constructor({ onForgotten = () => undefined }: { onForgotten?: (volume: VolumeName) => void } = {}) {
    this.#onForgotten = onForgotten;
  }

  node(name: NodeName): NodeState {
    const known = this.nodes.get(name);
    if (known !== undefined) return known;
    const created = new NodeState(name);
    this.nodes.set(name, created);
    return created;
  }

  /** The placement, made if it is not known yet. Whoever leaves it without want and hold calls `tidy`. */
  placement(volume: VolumeName, node: NodeName): Placement {
    return this.find(volume, node) ?? this.#add(volume, this.node(node));
  }

  find(volume: VolumeName, node: NodeName): Placement | undefined {
    return this.nodes.get(node)?.placements.get(volume);
  }

  *placements(): Generator<Placement> {
    for (const node of this.nodes.values()) yield* node.placements.values();
  }

  #add(volume: VolumeName, node: NodeState): Placement {
    const state = this.volumes.get(volume) ?? { name: volume, placements: [] };
    const placement = new Placement(state, node);
    // Nearly all volumes have one. A list made with it has room for one; a list it is pushed to, for 17.
    if (state.placements.length === 0) state.placements = [placement];
    else state.placements.push(placement);
    this.volumes.set(volume, state);
    node.placements.set(volume, placement);
    return placement;
  }

  /** To be called wherever want or hold of a placement came, changed or went. */
  noteUnwanted(placement: Placement): void {
    const { want, hold } = placement;
    if (want === undefined && hold?.unwantedSinceMs !== undefined) this.unwanted.add(placement);
    else this.unwanted.delete(placement);
  }

  /** Forgets a placement that nobody wants and nothing holds. */
  tidy(placement: Placement): void {
    const { volume, node } = placement;
    if (placement.want || placement.hold || placement.busy || placement.foreign.length > 0) return;
    if (node.placements.get(volume.name) !== placement) return;
    node.placements.delete(volume.name);
    node.assumed = excluding(node.assumed, placement);
    node.inherited = excluding(node.inherited, placement);
    this.waiters.forget(placement);
    volume.placements.splice(volume.placements.indexOf(placement), 1);
    if (volume.placements.length === 0 && this.volumes.delete(volume.name)) this.#onForgotten(volume.name);
    this.tidyNode(node);
  }

  /**
   * Forgets a node that has no object and nothing on it; otherwise every name ever seen would stay. With a pod there it is kept, also
   * where nothing is attached for that pod: should the node come again, what the pod asks for has to be found with the rest.
   */
  tidyNode(node: NodeState): void {
    if (node.exists || node.placements.size > 0 || node.unresolved.size > 0 || node.pods > 0) return;
    if (this.nodes.get(node.name) === node) this.nodes.delete(node.name);
  }
}

export interface VolumeState {
  readonly name: VolumeName;
  /** Nearly always one; a shared volume has one a node. */
  placements: Placement[];
}

/** A list of `volumesAttached` whose answer got lost on the way. */
export interface LateList {
  /** Of the node it was made from: the server refuses it once the node has another. */
  readonly version: string | undefined;
  /** In the clock's `now()`: by then the server has given it up. */
  readonly untilMs: number;
}

export class NodeState {
  readonly name: NodeName;
  /** The newest state seen, in the cache or in an answer to one of our requests; kept after the object is deleted. */
  node: Node | undefined = undefined;
  exists = false;
  /** The annotation was seen. Taking it off later changes nothing until a restart, as upstream. */
  managed = false;
  readonly placements = new Map<VolumeName, Placement>();
  /** How many pods of it are known, whether or not something is attached for them. */
  pods = 0;
  /**
   * What a write of `volumesAttached` names whose answer is still awaited, or never came: it may be on the server
   * already, or come to be.
   */
  unconfirmed: ReadonlySet<string> | undefined = undefined;
  /** What the last write of `volumesAttached` failed with; undefined once one went well. */
  writeError: string | undefined = undefined;
  /** Volumes that a lost list names, which may still arrive though a later one was answered. Usually empty, so usually shared. */
  late: ReadonlyMap<string, LateList> = NEVER;
  /** Volumes of live pods here that cannot be followed to a real volume. Usually empty, so usually shared. */
  unresolved: ReadonlySet<Unresolved> = NONE;
  /** Holds presumed mounted until this node is heard of again. */
  assumed: ReadonlySet<Placement> = NONE;
  /** Of these, those that only its own word on volumes in use ends: they are older than its Node object (`new-node.ts`). */
  inherited: ReadonlySet<Placement> = NONE;
  /** The Node object before this one, until this one has said which volumes it uses. */
  former: Node | undefined = undefined;
  /** This Node object has said which volumes it uses, or had the time to. */
  spoken = false;
  /** Since when this Node object has been seen ready, at a stretch, in the clock's `now()`. */
  readySinceMs: number | undefined = undefined;

  constructor(name: NodeName) {
    this.name = name;
  }
}

export const NONE: ReadonlySet<never> = new Set<never>();
const NEVER: ReadonlyMap<string, LateList> = new Map<string, LateList>();
export const NO_FOREIGN: readonly ForeignHold[] = [];

/** `set` with `item`, without making one where there was none needed. */
export function including<T>(set: ReadonlySet<T>, item: T): ReadonlySet<T> {
  return set === NONE ? new Set([item]) : (set as Set<T>).add(item);
}

export function excluding<T>(set: ReadonlySet<T>, item: T): ReadonlySet<T> {
  if (set === NONE) return set;
  (set as Set<T>).delete(item);
  return set.size === 0 ? NONE : set;
}

export class Placement {
  readonly volume: VolumeState;
  readonly node: NodeState;
  want: Want | undefined = undefined;
  hold: Hold | undefined = undefined;
  /** VolumeAttachments of others that have, or may get, the volume here. Usually none, so usually shared. */
  foreign: readonly ForeignHold[] = NO_FOREIGN;
  /** The operation under way here; it also keeps the placement from being forgotten. */
  busy: Busy | undefined = undefined;
  waiting: WaitingFor | undefined = undefined;
  /** Running while an attach or a detach is not complete. */
  timing: Timing | undefined = undefined;
  /** Its name is a digest, too dear for every look: kept from the first, or as the VolumeAttachment spells it. */
  attachmentName: string | undefined = undefined;

  constructor(volume: VolumeState, node: NodeState) {
    this.volume = volume;
    this.node = node;
  }
}

/** Why it should be attached. */
export interface Want {
  /** The first pod's; a later change of the PersistentVolume does not reach it, but one of another name for the same disk. */
  readonly spec: VolumeSpec;
  /** At most as many as a node runs. */
  readonly pods: Pod[];
  readonly sinceMs: number;
  /** Pods that were told that the volume is still elsewhere. */
  told: ReadonlySet<string>;
}

/** That it is, or may be, attached. */
export interface Hold {
  /** False is "uncertain": it counts as attached for whatever could let a second writer in. */
  confirmed: boolean;
  /**
   * An attach of this term has seen it attached. What was found at the start is only as true as a cache that may have been
   * cut off for a while: it is left where it is, but not given to a node anew before the server was asked.
   */
  proven: boolean;
  /** Unknown for what was only found by name after a restart. */
  spec: VolumeSpec | undefined;
  devicePath: string;
  /** Whether the node should be told that it may mount it. Never true of an uncertain one. */
  listed: boolean;
  /** Since when nobody wants it, in the clock's `now()`; undefined while somebody does. */
  unwantedSinceMs: number | undefined;
}

/** A VolumeAttachment that is not ours to delete. Attached or not, it counts as holding the volume until it is gone. */
export interface ForeignHold {
  readonly name: string;
  readonly attached: boolean;
  readonly deleting: boolean;
  /** The PersistentVolume it names, "" where it names none, and whether that may be on one node only. */
  readonly persistentVolume: string;
  readonly singleNode: boolean;
}

export interface Busy {
  readonly operation: "volume_attach" | "volume_detach";
  readonly sinceMs: number;
  /** The request has been accepted and the driver is at work. */
  withDriver: boolean;
  readonly abort: AbortController;
}

/** What a pod contributes. */
export interface PodRecord {
  pod: Pod;
  readonly node: NodeState;
  /** In the order of `spec.volumes`. */
  references: readonly Reference[];
}

/** One volume of a pod: where it led. */
export interface Reference {
  readonly placement: Placement | undefined;
  readonly unresolved: Unresolved | undefined;
  /** The plugin's label in metrics; undefined where none serves it. */
  readonly plugin: string | undefined;
}

export interface Unresolved {
  readonly pod: Pod;
  readonly volume: string;
  readonly resolution: Extract<Resolution, { kind: "unresolved" }>;
  readonly sinceMs: number;
}

/** How queues name a placement: node names have no blank. */
export type PlacementKey = string & { readonly __brand: "PlacementKey" };

export function placementKey({ node, volume }: Placement): PlacementKey {
  return `${node.name} ${volume.name}` as PlacementKey;
}

export function findPlacement(world: World, key: PlacementKey): Placement | undefined {
  const blank = key.indexOf(" ");
  return world.find(key.slice(blank + 1) as VolumeName, key.slice(0, blank) as NodeName);
}

/** The claim a PersistentVolume says it belongs to. */
export function claimOf(spec: VolumeSpec | undefined): ObjectKey | undefined {
  const claim = spec?.kind === "persistent" ? spec.volume.spec?.claimRef : undefined;
  return claim?.name ? (`${claim.namespace ?? ""}/${claim.name}` as ObjectKey) : undefined;
}
