import { parseStored, type ApiObject } from "../objects.ts";
import type { StoredObject } from "../store/store.ts";

/** Only an object that is going has the word in it, so that most need not be parsed to be told apart. */
export function isDeleting(stored: StoredObject): boolean {
  return stored.text.includes('"deletionTimestamp":') && isMarked(parseStored(stored));
}

export function isMarked({ metadata }: ApiObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

export function finalizersOf({ metadata }: ApiObject): readonly string[] {
  return metadata.finalizers ?? [];
}

export const FOREGROUND = "foregroundDeletion";
export const ORPHAN = "orphan";

/** It waits until what it owns is gone. */
export function isDeletingDependants(object: ApiObject): boolean {
  return isMarked(object) && finalizersOf(object).includes(FOREGROUND);
}

/** It waits until what it owns no longer says so. */
export function isOrphaningDependants(object: ApiObject): boolean {
  return isMarked(object) && finalizersOf(object).includes(ORPHAN);
}
