import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { fromLabelSelectorObject, matchesLabels } from "../../kube/selectors.ts";
import { classNameOf, isClaimedBy, volumeClassOf } from "../claims.ts";
import { bytesOf } from "../sizes.ts";
import { digitsOf, DIGITS_MAX, shelfKey } from "./shelves.ts";

/** Where volumes are looked up: an index of the cache, or a table in a test. */
export interface Shelves {
  /** Volumes that name the claim. */
  claimedBy(claim: PersistentVolumeClaim): readonly PersistentVolume[];
  /** Volumes on one shelf, those that somebody is just taking left out. */
  available(shelf: string): readonly PersistentVolume[];
}

/**
 * The volume a claim should have: one that names it, else the smallest that anybody may have and that fits. With
 * `onlyPromised` only the first: the scheduler chooses for claims that wait for their first pod.
 */
export function findVolume(
  shelves: Shelves,
  claim: PersistentVolumeClaim,
  { onlyPromised }: { readonly onlyPromised: boolean },
): PersistentVolume | undefined {
  const promised = shelves
    .claimedBy(claim)
    .find((volume) => isClaimedBy(volume, claim) && isUsable(volume, claim));
  if (promised || onlyPromised) return promised;
  const wanted = wantedBytes(claim);
  const shelf = { storageClass: classNameOf(claim) ?? "", mode: modeOf(claim) };
  for (let digits = digitsOf(wanted); digits <= DIGITS_MAX; digits++) {
    const fitting = shelves
      .available(shelfKey({ ...shelf, digits }))
      .filter((volume) => mismatchOf(volume, claim) === undefined);
    if (fitting.length > 0) return fitting.reduce((best, one) => (isSmaller(one, best) ? one : best));
  }
  return undefined;
}

/** Why the volume cannot be the claim's, in the words of an event; undefined if it can. */
export function mismatchOf(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const spec = volume.spec ?? {};
  if (volume.metadata.deletionTimestamp) return "it is being deleted";
  if (bytesOf(spec.capacity?.["storage"]) < wantedBytes(claim)) return "requested PV is too small";
  if (volumeClassOf(volume) !== (classNameOf(claim) ?? "")) return "storageClassName does not match";
  if ((spec.volumeMode ?? "Filesystem") !== modeOf(claim)) return "incompatible volumeMode";
  const offered = new Set<string>(spec.accessModes ?? []);
  if (!(claim.spec?.accessModes ?? []).every((mode) => offered.has(mode))) return "incompatible accessMode";
  return attributesClassOf(spec) === attributesClassOf(claim.spec)
    ? selectorMismatch(volume, claim)
    : "volumeAttributesClassName does not match";
}

/** Checked by name only for volumes somebody chose; a person may know better than class and modes say. */
function isUsable(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const { metadata, spec = {} } = volume;
  if (metadata.deletionTimestamp) return false;
  return (
    (spec.volumeMode ?? "Filesystem") === modeOf(claim) &&
    bytesOf(spec.capacity?.["storage"]) >= wantedBytes(claim)
  );
}

function selectorMismatch(
  { metadata }: PersistentVolume,
  { spec }: PersistentVolumeClaim,
): string | undefined {
  if (!spec?.selector) return undefined;
  try {
    return matchesLabels(fromLabelSelectorObject(spec.selector), metadata.labels)
      ? undefined
      : "its labels do not match the selector";
  } catch (error) {
    // A selector nobody can read selects nothing; the claim waits instead of stopping the others.
    return `the claim's selector cannot be read: ${String(error)}`;
  }
}

export function wantedBytes({ spec }: PersistentVolumeClaim): bigint {
  return bytesOf(spec?.resources?.requests?.["storage"]);
}

function modeOf({ spec }: PersistentVolumeClaim): string {
  return spec?.volumeMode ?? "Filesystem";
}

/** Newer than the types. */
function attributesClassOf(spec: object | undefined): string {
  return (spec as { volumeAttributesClassName?: string } | undefined)?.volumeAttributesClassName ?? "";
}

/** By name among equals, so that the choice does not depend on the order of a cache. */
function isSmaller(a: PersistentVolume, b: PersistentVolume): boolean {
  const [sizeA, sizeB] = [bytesOf(a.spec?.capacity?.["storage"]), bytesOf(b.spec?.capacity?.["storage"])];
  return sizeA === sizeB ? (a.metadata.name ?? "") < (b.metadata.name ?? "") : sizeA < sizeB;
}
