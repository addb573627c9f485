import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import type { ObjectKey } from "../../kube/object.ts";
import { csiSourceOf, type CsiSource } from "../../volumes/spec.ts";
import { translate } from "../../volumes/translation/translate.ts";
import { classNameOf } from "../claims.ts";
import { driversOf } from "./csi-drivers.ts";
import { claimUsesOf, type BoundClaim } from "./pod-claims.ts";
import type { VolumeChoice } from "./volumes.ts";
import type { ClusterView, NodeView, Refusal } from "./view.ts";

/**
 * How many volumes of a driver a node can have at once: what the driver said when it registered. A volume counts once,
 * however many pods use it, from the moment a pod is on its way until it is detached; one that is yet to be made counts as
 * one of its own.
 */
export function refuseByLimit(
  { bound, choice }: Wanted,
  nodeView: NodeView,
  view: ClusterView,
): Refusal | undefined {
  const limits = limitsOf(nodeView);
  if (limits.size === 0) return undefined;
  const wanted = wantedOf({ bound, choice });
  const drivers = [...wanted.keys()].filter((driver) => limits.has(driver));
  if (drivers.length === 0) return undefined;
  const present = presentOn(nodeView, view);
  const exceeded = drivers.some((driver) => {
    const there = present.get(driver) ?? new Set();
    const more = [...(wanted.get(driver) ?? [])].filter((id) => !there.has(id)).length;
    return more > 0 && there.size + more > (limits.get(driver) ?? 0);
  });
  return exceeded ? EXCEEDED : undefined;
}

interface Wanted {
  readonly bound: readonly BoundClaim[];
  readonly choice: Extract<VolumeChoice, { kind: "possible" }>;
}

/** A volume that is promised, or a pod that arrives, may turn out to be one that was counted already. */
const EXCEEDED: Refusal = {
  text: "node(s) exceed max volume count",
  until: ["room", "node", "pod", "volume"],
};

/** Handles by driver, and names of our own for volumes that are yet to be made. */
type VolumesByDriver = ReadonlyMap<string, ReadonlySet<string>>;

export function limitsOf({ csiNode }: Pick<NodeView, "csiNode">): ReadonlyMap<string, number> {
  const limits = new Map<string, number>();
  for (const { name, allocatable } of driversOf(csiNode))
    if (allocatable?.count !== undefined) limits.set(name, allocatable.count);
  return limits;
}

/** What is attached to the node, and what its pods are about to have attached. */
export function presentOn({ pods, planned, attachments }: NodeView, view: ClusterView): VolumesByDriver {
  const found = new VolumeSets();
  for (const pod of pods) {
    addPod(found, pod, view);
    for (const volume of planned.get(pod) ?? []) addVolume(found, volume);
  }
  for (const attachment of attachments) addAttachment(found, attachment, view);
  return found.sets;
}

/** What a pod will have attached where its claims get what was chosen. */
function wantedOf({ bound, choice }: Wanted): VolumesByDriver {
  const found = new VolumeSets();
  for (const { volume } of bound) addVolume(found, volume);
  for (const { volume } of choice.existing) addVolume(found, volume);
  for (const { key, storageClass } of choice.provisioned) found.add(storageClass.provisioner, toBeMade(key));
  return found.sets;
}

class VolumeSets {
  readonly sets = new Map<string, Set<string>>();

  add(driver: string, id: string): void {
    const set = this.sets.get(driver) ?? new Set();
    this.sets.set(driver, set.add(id));
  }
}

/** No handle begins like this by accident: claims have a slash, and so may handles, but not after this word. */
function toBeMade(claim: ObjectKey): string {
  return `(to be made for ${claim})`;
}

function addPod(found: VolumeSets, pod: Pod, view: ClusterView): void {
  for (const { key } of claimUsesOf(pod)) {
    const claim = view.claim(key);
    if (!claim) continue;
    const volume = claim.spec?.volumeName ? view.volume(claim.spec.volumeName) : promisedTo(claim, view);
    const provisioner = view.storageClass(classNameOf(claim) ?? "")?.provisioner;
    if (volume) addVolume(found, volume);
    else if (provisioner !== undefined) found.add(provisioner, toBeMade(key));
  }
}

/** A volume that names the claim counts as that volume before the claim names it back. */
function promisedTo(
  claim: NonNullable<ReturnType<ClusterView["claim"]>>,
  view: ClusterView,
): PersistentVolume | undefined {
  return view.candidates(claim).find(({ spec }) => spec?.claimRef?.uid === claim.metadata.uid);
}

function addVolume(found: VolumeSets, volume: PersistentVolume): void {
  const csi = csiOf(volume);
  if (csi) found.add(csi.driver, csi.volumeHandle);
}

function addAttachment(found: VolumeSets, { metadata, spec }: VolumeAttachment, view: ClusterView): void {
  const { persistentVolumeName, inlineVolumeSpec } = spec.source;
  const volume = persistentVolumeName ? view.volume(persistentVolumeName) : undefined;
  const csi = volume ? csiOf(volume) : inlineVolumeSpec?.csi;
  // Without its volume it is still there, under no name that anybody could share.
  found.add(spec.attacher, csi?.volumeHandle ?? `(attached by ${metadata.name ?? ""})`);
}

export function driverOf(volume: PersistentVolume): string | undefined {
  return csiOf(volume)?.driver;
}

/** Volumes of the caches never change, so each is translated once. Bound: as long as somebody keeps the volume. */
const known = new WeakMap<PersistentVolume, CsiSource | "none">();

function csiOf(volume: PersistentVolume): CsiSource | undefined {
  const found = known.get(volume) ?? translated(volume) ?? "none";
  known.set(volume, found);
  return found === "none" ? undefined : found;
}

function translated(volume: PersistentVolume): CsiSource | undefined {
  const spec = { kind: "persistent", volume, readOnly: false, migrated: "none" } as const;
  const translation = translate(spec, volume.spec?.claimRef?.namespace ?? "");
  return translation.kind === "translated" ? csiSourceOf(translation.spec) : undefined;
}
