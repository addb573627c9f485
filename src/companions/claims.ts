import type { TypedLocalObjectReference } from "kubernetes-types/core/v1.js";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import { sourceKind, type StorageClass } from "./kinds.ts";
import { BIND_COMPLETED, CLASS_BETA, DEFAULT_CLASS } from "./names.ts";

/** What a claim says, read in one place. */

/** Undefined where it leaves the choice to the default; "" means none. */
export function classNameOf({ metadata, spec }: PersistentVolumeClaim): string | undefined {
  return metadata.annotations?.[CLASS_BETA] ?? spec?.storageClassName;
}

export function volumeClassOf({ metadata, spec }: PersistentVolume): string {
  return metadata.annotations?.[CLASS_BETA] ?? spec?.storageClassName ?? "";
}

/** No name of a class can be this: they are domain names. */
export const NO_CHOICE = "(default)";

/** The key of the index by class. */
export function classKeyOf(claim: PersistentVolumeClaim): string {
  return classNameOf(claim) ?? NO_CHOICE;
}

export function isWaiting(claim: PersistentVolumeClaim): boolean {
  return !claim.spec?.volumeName && !isBindCompleted(claim);
}

export function isBindCompleted({ metadata }: PersistentVolumeClaim): boolean {
  return metadata.annotations?.[BIND_COMPLETED] !== undefined;
}

/** `dataSourceRef` is the newer spelling and says all that `dataSource` can. */
export function sourceOf({
  spec,
}: PersistentVolumeClaim):
  (TypedLocalObjectReference & { readonly namespace?: string | undefined }) | undefined {
  return spec?.dataSourceRef ?? spec?.dataSource ?? undefined;
}

/** `snapshot/ns/name` or `claim/ns/name`. */
export function sourceKeyOf(claim: PersistentVolumeClaim): string | undefined {
  const source = sourceOf(claim);
  return source && `${sourceKind(source)}/${claim.metadata.namespace}/${source.name}`;
}

/** Whether the volume names this claim: by name, and by uid where it has one. */
export function isClaimedBy({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  const ref = spec?.claimRef;
  if (!ref || ref.name !== metadata.name || ref.namespace !== metadata.namespace) return false;
  return !ref.uid || ref.uid === metadata.uid;
}

/** The newest class that says it is the default, as a real server chooses; of two of one second the first by name. */
export function defaultClassOf(classes: Iterable<StorageClass>): StorageClass | undefined {
  let best: StorageClass | undefined;
  for (const one of classes) {
    const isDefault = DEFAULT_CLASS.some((key) => one.metadata.annotations?.[key] === "true");
    if (isDefault && (best === undefined || isBefore(one, best))) best = one;
  }
  return best;
}

function isBefore(a: StorageClass, b: StorageClass): boolean {
  const [at, bt] = [a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? ""];
  // Times are RFC 3339 in UTC, which sort as text.
  return at === bt ? (a.metadata.name ?? "") < (b.metadata.name ?? "") : at > bt;
}
