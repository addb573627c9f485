import type { Payload } from "./payload.ts";

/**
 * What a content volume looks like on disk, and what has to happen to make it hold a payload. Files lie in a directory
 * of their own a version; `..data` points at the current one, and what the pod sees are links through it:
 *
 *     a -> ..data/a        ..data -> ..2026_11_16_01_30_00.123456789        ..2026_11_16_01_30_00.123456789/a
 *
 * Moving one link changes all files at once. Readers of a pod watch for that rename.
 */
export const DATA_LINK = "..data";
export const DATA_LINK_NEW = "..data_tmp";
/** Of versions, whole or half written: nothing else may be called like this. */
export const VERSION = /^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+$/;

/** The names in the volume's directory, with where links point. */
export type Listing = ReadonlyMap<string, { readonly target: string | undefined }>;

export interface StoredFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

interface AtomicView {
  readonly listing: Listing;
  /** Of the version that `..data` points at; empty where there is none. */
  readonly stored: ReadonlyMap<string, StoredFile>;
  readonly payload: Payload;
  readonly fsGroup: number | undefined;
}

export interface AtomicPlan {
  /** Whether a new version has to be written and switched to. */
  readonly rewrite: boolean;
  /** Links to make, by the name the pod sees. */
  readonly linksToAdd: readonly string[];
  /** Links to take away, after the switch. */
  readonly linksToRemove: readonly string[];
  /** Left behind by a crash, to be removed before anything is written. */
  readonly debris: readonly string[];
  readonly current: string | undefined;
}

export function planAtomicWrite({ listing, stored, payload, fsGroup }: AtomicView): AtomicPlan {
  const current = versionOf(listing);
  const visible = new Set([...payload.keys()].map(topName));
  const ours = [...listing]
    .filter(([name, { target }]) => target === throughData(name))
    .map(([name]) => name);
  return {
    rewrite: current === undefined || !isSame(stored, payload, fsGroup),
    linksToAdd: [...visible].filter((name) => listing.get(name)?.target !== throughData(name)),
    linksToRemove: ours.filter((name) => !visible.has(name)),
    debris: [...listing.keys()].filter(
      (name) => name === DATA_LINK_NEW || (VERSION.test(name) && name !== current),
    ),
    current,
  };
}

export function topName(path: string): string {
  return path.split("/", 1)[0] ?? path;
}

export function throughData(name: string): string {
  return `${DATA_LINK}/${name}`;
}

/** Bits the group gets of a read-only volume; applied to every file when the pod has a group. */
const GROUP_READS = 0o440;

/** As it lies on disk once the group was applied: what later looks are compared with. */
function storedMode(mode: number, fsGroup: number | undefined): number {
  return fsGroup === undefined ? mode : mode | GROUP_READS;
}

/** A link that points anywhere but at a version is none of ours, and is replaced. */
function versionOf(listing: Listing): string | undefined {
  const target = listing.get(DATA_LINK)?.target;
  return target !== undefined && VERSION.test(target) && listing.has(target) ? target : undefined;
}

/** Modes and owners too: whoever changed them by hand gets them back at the next refresh. */
function isSame(
  stored: ReadonlyMap<string, StoredFile>,
  payload: Payload,
  fsGroup: number | undefined,
): boolean {
  if (stored.size !== payload.size) return false;
  for (const [path, { bytes, mode, uid }] of payload) {
    const file = stored.get(path);
    if (file === undefined || Buffer.compare(file.bytes, bytes) !== 0) return false;
    if (file.mode !== storedMode(mode, fsGroup) || file.uid !== (uid ?? 0)) return false;
    if (fsGroup !== undefined && file.gid !== fsGroup) return false;
  }
  return true;
}
