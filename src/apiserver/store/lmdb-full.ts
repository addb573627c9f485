import type { Batch, Intent } from "./lmdb-batch.ts";
import type { Changes, Purpose } from "./lmdb-environment.ts";
import { toPosition } from "./keys.ts";
import { encodeHead, HEAD_KEY, writeKey } from "./lmdb-records.ts";
import type { CommittedState } from "./state.ts";
import type { StoreEvent } from "./store.ts";

/**
 * What can still be done on a full disk. Deletions and updates that do not grow are written without history: the new
 * version takes the place of the old one in the same commit, so that afterwards no more is stored than before.
 */

/** A deletion that waits for finalizers is an update by a timestamp and who set it, some 300 bytes. */
const STEADY_GROWTH_CHARS = 1_024;

/** Writes of one such commit: few, so that what it needs beside its values stays within the reserve. */
export const FULL_BATCH_MAX = 8;

/** Whether a write may use the reserve for this purpose. One that is going to be refused anyway needs no room. */
export function mayUseReserve(state: CommittedState, intent: Intent, purpose: Purpose): boolean {
  if (intent.type === "deleted") return true;
  const current = state.get(intent.key);
  if (intent.expected === undefined) return current !== undefined;
  if (current?.revision !== intent.expected) return true;
  if (purpose === "removal") return false;
  try {
    return intent.render(state.revision + 1).length <= current.text.length + STEADY_GROWTH_CHARS;
  } catch {
    return true; // its own failure, which the batch finds
  }
}

/**
 * A batch on a file without history: afterwards history begins at its last revision. Of several writes to one object only
 * the last is there.
 */
export function changesWithoutHistory(
  { events }: Batch,
  encode: (event: StoreEvent) => { readonly key: Buffer; readonly value: Buffer },
): { readonly changes: Changes; readonly compactedRevision: number } {
  const first = events[0]?.object.revision ?? 0;
  const latest = new Map<string, StoreEvent>();
  const removes: Buffer[] = [];
  for (const event of events) {
    const { key } = event.object;
    latest.set(`${key.resource}\0${toPosition(key)}`, event);
    const replaced = event.previous?.revision ?? first;
    if (replaced < first) removes.push(writeKey(replaced));
  }
  const compactedRevision = events.at(-1)?.object.revision ?? 0;
  const puts = [...latest.values()].filter(({ type }) => type !== "deleted").map(encode);
  const head = { key: HEAD_KEY, value: encodeHead({ compactedRevision }) };
  return { changes: { puts: [head, ...puts], removes }, compactedRevision };
}
