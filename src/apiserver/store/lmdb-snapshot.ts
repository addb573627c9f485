import type { Clock } from "../../base/clock.ts";
import { hasStore, makePrivate, nextTurn, unusable, withPages } from "./lmdb-disk.ts";
import { openEnvironment, readCommitted, type Changes, type Environment } from "./lmdb-environment.ts";
import { checkRecords, loadRecords, loadState } from "./lmdb-load.ts";
import { encodeHead, encodeWrite, HEAD_KEY, writeKey } from "./lmdb-records.ts";
import type { CommittedState } from "./state.ts";
import { StoreError, type StoredObject } from "./store.ts";

/** Every object as it was at one revision. */
export interface StoreContent {
  readonly revision: number;
  /** In the order of their revisions. */
  readonly objects: readonly StoredObject[];
}

/**
 * The last commit of a store, read and checked as a start does it. With `isInUse`, another process has the store open and
 * may be writing; without, the caller sees to it that none does.
 */
export async function readLmdbStore(
  clock: Clock,
  { directory, isInUse }: { readonly directory: string; readonly isInUse: boolean },
): Promise<StoreContent> {
  try {
    const state = isInUse
      ? await readCommitted(directory, (records) => loadRecords({ path: directory, records }, clock, {}))
      : await withPages(directory, (source) => loadState(source, clock, {}));
    return contentOf(state);
  } catch (error) {
    throw error instanceof StoreError ? error : unusable("open", directory, error);
  }
}

export { hasStore as hasLmdbStore };

/** Records of one commit while a store is filled: about 2 MB of objects of 2 kB. */
const FILL_MAX = 1_000;

/**
 * Fills an empty directory with a store that stands at `startRevision` and knows nothing of before: whoever asks for an
 * earlier revision is told that it is compacted. Objects keep the revisions they have, which are part of their text.
 * Not whole before it resolves, and not synced as a directory; both are for the caller, who gives it its place.
 */
export async function fillLmdbStore(
  directory: string,
  { objects }: StoreContent,
  { startRevision, writtenAtMs }: { readonly startRevision: number; readonly writtenAtMs: number },
): Promise<void> {
  try {
    const environment = openEnvironment(directory);
    try {
      await commitAll(environment, objects, writtenAtMs);
      const value = encodeHead({ compactedRevision: startRevision });
      await environment.commit({ puts: [{ key: HEAD_KEY, value }], removes: [] });
    } finally {
      await environment.close();
    }
    makePrivate(directory);
    await withPages(directory, (source) => checkRecords(source, nextTurn));
  } catch (error) {
    throw error instanceof StoreError ? error : unusable("make", directory, error);
  }
}

function contentOf(state: CommittedState): StoreContent {
  const objects = [...state.objects()].sort((a, b) => a.revision - b.revision);
  return { revision: state.revision, objects };
}

async function commitAll(
  environment: Environment,
  objects: readonly StoredObject[],
  writtenAtMs: number,
): Promise<void> {
  for (let start = 0; start < objects.length; start += FILL_MAX) {
    const puts: Changes["puts"] = objects.slice(start, start + FILL_MAX).map((object) => {
      const key = writeKey(object.revision);
      return { key, value: encodeObject(key, object, writtenAtMs) };
    });
    await environment.commit({ puts, removes: [] });
  }
}

/** An object without the history that led to it. */
function encodeObject(key: Buffer, object: StoredObject, committedAtMs: number): Buffer {
  return encodeWrite(key, { type: "created", object, previousRevision: 0, committedAtMs });
}
