import type { Pod } from "../kube/api/pod.ts";
import { keyOf } from "../kube/object.ts";
import type { NodeName } from "../volumes/names.ts";
import { isPodTerminated } from "../volumes/resolve.ts";
import { specName, type VolumeSpec } from "../volumes/spec.ts";
import { learnSpec } from "./actual.ts";
import { wishOf, type PopulateDeps, type Wish } from "./populate.ts";
import type { Tally } from "./tally.ts";
import {
  excluding,
  including,
  NONE,
  type NodeState,
  type Placement,
  type PodRecord,
  type Reference,
  type Unresolved,
  type World,
} from "./world.ts";

/**
 * What should be attached: the volumes of every scheduled pod that is not over. Everything a pod asked for is
 * remembered under its uid, so that its end needs neither its claim nor its volume to be still there.
 */
export interface DesiredDeps extends PopulateDeps {
  readonly world: World;
  readonly tally: Tally;
  /** This placement is wanted now and was not, or no longer is. */
  readonly changed: (placement: Placement) => void;
  /** A volume of a live pod on this node became impossible to follow, or possible again. */
  readonly questionsChanged: (node: NodeState) => void;
  /** A pod that was not over until now is gone or over; its references are those it had. */
  readonly podLeft: (record: PodRecord) => void;
  /** A pod of this node is gone or over. */
  readonly podEnded: (node: NodeState) => void;
}

/** Takes in a pod as it is now. `again` follows its volumes anew although the pod itself did not change. */
export function setPod(
  deps: DesiredDeps,
  pod: Pod,
  { nowMs, again = false }: { readonly nowMs: number; readonly again?: boolean },
): void {
  const node = pod.spec?.nodeName as NodeName | undefined;
  if (!node || !Array.isArray(pod.spec?.volumes) || pod.spec.volumes.length === 0) return;
  const known = deps.world.pods.get(uidOf(pod));
  if (known?.pod === pod && !again) return;
  const record = known ?? newRecord(deps, pod, node);
  const previous = record.pod;
  record.pod = pod;
  const over = isPodTerminated(pod);
  if (over && !(known && isPodTerminated(previous))) deps.podLeft(record);
  // Volumes of a pod never change; where each leads may, and only until it was found.
  const settled = known && !again && isPodTerminated(previous) === over && !known.references.some(isOpen);
  if (settled) refreshPod(record, previous);
  else follow(deps, record, { over, nowMs });
}

export function removePod(deps: DesiredDeps, pod: Pod, nowMs: number): void {
  const record = deps.world.pods.get(uidOf(pod));
  if (record === undefined) return;
  deps.world.pods.delete(uidOf(pod));
  for (const reference of record.references) release(deps, record, reference, nowMs);
  if (record.references.some(isOpen)) deps.questionsChanged(record.node);
  if (!isPodTerminated(record.pod)) deps.podLeft(record);
  deps.podEnded(record.node);
  record.node.pods--;
  deps.world.tidyNode(record.node);
}

function newRecord({ world }: DesiredDeps, pod: Pod, name: NodeName): PodRecord {
  const record: PodRecord = { pod, node: world.node(name), references: [] };
  record.node.pods++;
  world.pods.set(uidOf(pod), record);
  return record;
}

/** A pod without uid comes from no API server; its name then has to do. */
export function uidOf(pod: Pod): string {
  return pod.metadata.uid ?? keyOf(pod);
}

function isOpen({ unresolved }: Reference): boolean {
  return unresolved !== undefined;
}

/** Events should name the pod as it is now. */
function refreshPod({ pod, references }: PodRecord, previous: Pod): void {
  for (const { placement } of references) {
    const pods = placement?.want?.pods;
    const index = pods?.indexOf(previous) ?? -1;
    if (pods && index >= 0) pods[index] = pod;
  }
}

function follow(
  deps: DesiredDeps,
  record: PodRecord,
  { over, nowMs }: { readonly over: boolean; readonly nowMs: number },
): void {
  const before = record.references;
  const volumes = record.pod.spec?.volumes ?? [];
  const after = volumes.map((volume, index): Reference => {
    const wish = wishOf(record.pod, volume, deps);
    return refer(deps, record, { wish, name: volume.name, before: before[index], over, nowMs });
  });
  record.references = after;
  // Released only now, so that a volume wanted before and after is never unwanted in between.
  for (const reference of before) release(deps, record, reference, nowMs);
  if (before.some(isOpen) || after.some(isOpen)) deps.questionsChanged(record.node);
  if (over) deps.podEnded(record.node);
}

interface Following {
  readonly wish: Wish;
  readonly name: string;
  readonly before: Reference | undefined;
  readonly over: boolean;
  readonly nowMs: number;
}

function refer(
  deps: DesiredDeps,
  record: PodRecord,
  { wish, name, before, over, nowMs }: Following,
): Reference {
  switch (wish.kind) {
    case "none":
      return count(deps, record, { placement: undefined, unresolved: undefined, plugin: wish.plugin });
    case "attach": {
      const placement = over ? undefined : deps.world.placement(wish.volume, record.node.name);
      if (placement) want(deps, placement, { pod: record.pod, spec: wish.spec, nowMs });
      return count(deps, record, { placement, unresolved: undefined, plugin: wish.plugin });
    }
    case "unresolved": {
      // A volume once found stays wanted although its claim can no longer be followed: unsure means keep.
      const placement = over ? undefined : before?.placement;
      const spec = placement?.want?.spec;
      if (placement && spec) want(deps, placement, { pod: record.pod, spec, nowMs });
      const found = placement !== undefined && spec !== undefined;
      const unresolved = over || found ? undefined : openQuestion(record, wish, { name, before, nowMs });
      if (unresolved) record.node.unresolved = including(record.node.unresolved, unresolved);
      return count(deps, record, {
        placement: found ? placement : undefined,
        unresolved,
        plugin: found ? before?.plugin : undefined,
      });
    }
  }
}

function openQuestion(
  { pod }: PodRecord,
  { resolution }: Extract<Wish, { kind: "unresolved" }>,
  { name, before, nowMs }: { name: string; before: Reference | undefined; nowMs: number },
): Unresolved {
  const earlier = before?.unresolved;
  const sinceMs = earlier?.resolution.why === resolution.why ? earlier.sinceMs : nowMs;
  return { pod, volume: name, resolution, sinceMs };
}

function count({ tally }: DesiredDeps, { node }: PodRecord, reference: Reference): Reference {
  if (reference.plugin !== undefined) tally.referenced(node.name, reference.plugin, 1);
  return reference;
}

function want(
  { world, tally, changed }: DesiredDeps,
  placement: Placement,
  { pod, spec, nowMs }: { readonly pod: Pod; readonly spec: VolumeSpec; readonly nowMs: number },
): void {
  if (placement.want) {
    placement.want.pods.push(pod);
    // The same disk by a PersistentVolume of another name: with the old one nothing could be attached any more.
    if (specName(spec) === specName(placement.want.spec)) return;
    tally.wanted(placement.want.spec, -1);
    placement.want = { ...placement.want, spec };
    tally.wanted(spec, 1);
    changed(placement);
    return;
  }
  const { hold } = placement;
  // One object for both: 1,000,000 volumes that were found attached at the start have a spec already.
  const shared = hold?.spec && isSameSpec(hold.spec, spec) ? hold.spec : spec;
  placement.want = { spec: shared, pods: [pod], sinceMs: nowMs, told: NONE };
  tally.wanted(spec, 1);
  if (hold && hold.spec === undefined) learnSpec({ tally }, placement, spec);
  // Attached or perhaps: the time until a forced detach is counted from the last moment a pod wanted it.
  if (hold) hold.unwantedSinceMs = undefined;
  world.noteUnwanted(placement);
  changed(placement);
}

function isSameSpec(one: VolumeSpec, other: VolumeSpec): boolean {
  if (one.kind !== "persistent" || other.kind !== "persistent") return false;
  return one.volume === other.volume && one.readOnly === other.readOnly && one.migrated === other.migrated;
}

function release(deps: DesiredDeps, record: PodRecord, reference: Reference, nowMs: number): void {
  const { placement, unresolved, plugin } = reference;
  if (plugin !== undefined) deps.tally.referenced(record.node.name, plugin, -1);
  if (unresolved) record.node.unresolved = excluding(record.node.unresolved, unresolved);
  if (placement?.want) unwant(deps, placement, { uid: uidOf(record.pod), nowMs });
}

function unwant(
  { world, tally, changed }: DesiredDeps,
  placement: Placement,
  { uid, nowMs }: { readonly uid: string; readonly nowMs: number },
): void {
  const { want: wanted, hold } = placement;
  const index = wanted?.pods.findIndex((pod) => uidOf(pod) === uid) ?? -1;
  if (wanted === undefined || index < 0) return;
  wanted.pods.splice(index, 1);
  if (wanted.pods.length > 0) return;
  placement.want = undefined;
  tally.wanted(wanted.spec, -1);
  if (hold) hold.unwantedSinceMs ??= nowMs;
  world.noteUnwanted(placement);
  changed(placement);
  world.tidy(placement);
}
