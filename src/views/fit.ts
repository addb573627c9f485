import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import { compareQuantities, parseQuantity } from "../kube/quantity.ts";
import type { Cluster } from "./cluster.ts";
import { field, idOf, isDeleting, nameOf, textAt, textsAt } from "./fields.ts";

/*
 * Which existing PersistentVolume a claim could have, and what is wrong with it. Only what is certain counts as a misfit: a
 * selector with expressions, or a quantity that nobody can read, is not judged here.
 */

/**
 * Those that a claim without a volume may be meant for, the more surely meant alone: the one that it names, those that name
 * it, those of its class.
 */
export function candidatesFor(cluster: Cluster, claim: PersistentVolumeClaim): readonly PersistentVolume[] {
  const meant = meantFor(cluster, claim);
  return meant.length > 0 ? meant : (indexOf(cluster).byClass.get(classOf(claim)) ?? []);
}

/** The one that it names, else those that name it. */
export function meantFor(cluster: Cluster, claim: PersistentVolumeClaim): readonly PersistentVolume[] {
  const named = cluster.find("volumes", textAt(claim, "spec", "volumeName"));
  return named === undefined ? (indexOf(cluster).byClaim.get(idOf(claim)) ?? []) : [named];
}

interface VolumeIndex {
  readonly byClaim: ReadonlyMap<string, readonly PersistentVolume[]>;
  readonly byClass: ReadonlyMap<string, readonly PersistentVolume[]>;
}

/** Once for a cluster: 500 claims that wait among 10,000 volumes would look at five million. */
const indexes = new WeakMap<Cluster, VolumeIndex>();

function indexOf(cluster: Cluster): VolumeIndex {
  const known = indexes.get(cluster);
  if (known !== undefined) return known;
  const [byClaim, byClass] = [new Map<string, PersistentVolume[]>(), new Map<string, PersistentVolume[]>()];
  const add = (map: Map<string, PersistentVolume[]>, key: string, volume: PersistentVolume) => {
    const group = map.get(key);
    if (group === undefined) map.set(key, [volume]);
    else group.push(volume);
  };
  for (const volume of cluster.objects.volumes) {
    add(byClaim, claimRefOf(volume), volume);
    add(byClass, classOf(volume), volume);
  }
  const index = { byClaim, byClass };
  indexes.set(cluster, index);
  return index;
}

/** Why the volume cannot be bound to the claim, in words; undefined where nothing speaks against it. */
export function misfit(claim: PersistentVolumeClaim, volume: PersistentVolume): string | undefined {
  return (
    taken(claim, volume) ??
    sizeMisfit(claim, volume) ??
    classMisfit(claim, volume) ??
    modesMisfit(claim, volume)
  );
}

function taken(claim: PersistentVolumeClaim, volume: PersistentVolume): string | undefined {
  if (isDeleting(volume)) return "it is being deleted";
  const [other, phase] = [claimRefOf(volume), textAt(volume, "status", "phase")];
  const uid = textAt(volume, "spec", "claimRef", "uid");
  if (other !== "" && other !== idOf(claim)) return `it is ${phase || "kept"} for claim ${other}`;
  if (uid !== "" && uid !== textAt(claim, "metadata", "uid"))
    return `it is ${phase || "kept"} for an earlier claim ${other}`;
  return phase === "Failed" ? "it is Failed" : undefined;
}

function sizeMisfit(claim: PersistentVolumeClaim, volume: PersistentVolume): string | undefined {
  const wanted = textAt(claim, "spec", "resources", "requests", "storage");
  const size = textAt(volume, "spec", "capacity", "storage");
  return isMore(wanted, size) ? `it has ${size}, and ${wanted} are asked for` : undefined;
}

function classMisfit(claim: PersistentVolumeClaim, volume: PersistentVolume): string | undefined {
  const [wanted, offered] = [classOf(claim), classOf(volume)];
  if (wanted === offered) return undefined;
  return `its class is ${offered || "empty"}, and ${wanted || "an empty one"} is asked for`;
}

function modesMisfit(claim: PersistentVolumeClaim, volume: PersistentVolume): string | undefined {
  const offered = textsAt(volume, "spec", "accessModes");
  const unmet = textsAt(claim, "spec", "accessModes").filter((mode) => !offered.includes(mode));
  if (unmet.length > 0 && offered.length > 0)
    return `it offers ${offered.join(", ")}, and ${unmet.join(", ")} is asked for`;
  const [wantedMode, mode] = [claim, volume].map(
    (item) => textAt(item, "spec", "volumeMode") || "Filesystem",
  );
  if (wantedMode !== mode) return `it is a ${mode} volume, and a ${wantedMode} one is asked for`;
  const labels = field(claim, "spec", "selector", "matchLabels");
  const missing = Object.entries(typeof labels === "object" && labels !== null ? labels : {}).find(
    ([key, value]) => field(volume, "metadata", "labels", key) !== value,
  );
  return missing && `the claim's selector asks for the label ${missing[0]}=${String(missing[1])}`;
}

/** False also where either cannot be read. */
export function isMore(wanted: string, size: string): boolean {
  try {
    return wanted !== "" && size !== "" && compareQuantities(parseQuantity(wanted), parseQuantity(size)) > 0;
  } catch {
    return false;
  }
}

function classOf(object: PersistentVolumeClaim | PersistentVolume): string {
  return textAt(object, "spec", "storageClassName");
}

/** `namespace/name` of the claim that a volume is for, bound or reserved; empty for none. */
export function claimRefOf(volume: PersistentVolume | undefined): string {
  const name = textAt(volume, "spec", "claimRef", "name");
  return name === "" ? "" : `${textAt(volume, "spec", "claimRef", "namespace")}/${name}`;
}

/** `pv-1: it has 1Gi, and 10Gi are asked for`; the first three, since a class may have thousands. */
export function misfitsInWords(claim: PersistentVolumeClaim, volumes: readonly PersistentVolume[]): string {
  const all = volumes.flatMap((volume) => {
    const why = misfit(claim, volume);
    return why === undefined ? [] : [`PersistentVolume ${nameOf(volume)}: ${why}`];
  });
  const more = all.length - 3;
  return [...all.slice(0, 3), ...(more > 0 ? [`${more} more`] : [])].join("; ");
}
