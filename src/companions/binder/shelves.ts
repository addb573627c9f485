import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { volumeClassOf } from "../claims.ts";
import { bytesOf } from "../sizes.ts";

/**
 * Volumes that anybody may have stand on shelves: one for each class, mode and power of two of their size. A claim looks
 * at the shelf of its own size and then at larger ones, and stops at the first with a volume that fits: the smallest that
 * fits is on it. So the search costs a shelf or two, not all volumes of the class.
 */
export interface Shelf {
  readonly storageClass: string;
  readonly mode: string;
  /** Binary digits of the size in bytes. */
  readonly digits: number;
}

/** 2^63 bytes is the largest amount there is. */
export const DIGITS_MAX = 64;

export function digitsOf(bytes: bigint): number {
  return bytes.toString(2).length;
}

export function shelfKey({ storageClass, mode, digits }: Shelf): string {
  return `${storageClass}/${mode}/${digits}`;
}

/** Undefined for a volume that is promised, going, or not yet said to be available. */
export function availableShelf(volume: PersistentVolume): string | undefined {
  const { metadata, spec = {}, status } = volume;
  if (spec.claimRef || metadata.deletionTimestamp || status?.phase !== "Available") return undefined;
  const digits = digitsOf(bytesOf(spec.capacity?.["storage"]));
  return shelfKey({ storageClass: volumeClassOf(volume), mode: spec.volumeMode ?? "Filesystem", digits });
}
