import type { CommittedState } from "./state.ts";
import { toPosition } from "./keys.ts";
import type { CreateOutcome, Render, StoredObject, StoreEvent, StoreKey, WriteOutcome } from "./store.ts";

/** A write that somebody waits for. */
export interface Intent {
  readonly type: StoreEvent["type"];
  readonly key: StoreKey;
  readonly render: Render;
  /** The revision it was decided upon; undefined for a create, which wants the name to be free. */
  readonly expected: number | undefined;
  readonly resolve: (outcome: CreateOutcome | WriteOutcome) => void;
  readonly reject: (error: unknown) => void;
}

interface Decision {
  readonly intent: Intent;
  readonly outcome: CreateOutcome | WriteOutcome;
  /** Whether it rests on a write of this batch, and falls with it. */
  readonly isInBatch: boolean;
}

export interface Batch {
  /** In the order of their revisions, the first of which is the state's next. */
  readonly events: readonly StoreEvent[];
  readonly decisions: readonly Decision[];
}

/**
 * Decides each write on what is committed and on the writes before it in this batch. Nothing is committed yet, so no
 * decision may be told before the batch is: a caller who lost against a write that nobody can read would
 * look, find what it found before, and try the same again. A `render` that throws fails its own write only.
 */
export function planBatch(state: CommittedState, intents: readonly Intent[]): Batch {
  const events: StoreEvent[] = [];
  const decisions: Decision[] = [];
  /** What this batch makes of a key; undefined where it deletes. */
  const changed = new Map<string, StoredObject | undefined>();
  for (const intent of intents) {
    const id = `${intent.key.resource}\0${toPosition(intent.key)}`;
    const isInBatch = changed.has(id);
    const current = isInBatch ? changed.get(id) : state.get(intent.key);
    const refusal = refusalOf(intent, current);
    if (refusal !== undefined) {
      decisions.push({ intent, outcome: refusal, isInBatch });
      continue;
    }
    const object = renderOrReject(intent, state.revision + events.length + 1);
    if (object === undefined) continue;
    events.push({ type: intent.type, object, previous: current });
    changed.set(id, intent.type === "deleted" ? undefined : object);
    decisions.push({ intent, outcome: { kind: "committed", object }, isInBatch: true });
  }
  return { events, decisions };
}

function refusalOf(
  { expected }: Intent,
  current: StoredObject | undefined,
): CreateOutcome | WriteOutcome | undefined {
  if (expected !== undefined) return current?.revision === expected ? undefined : { kind: "conflict" };
  return current === undefined ? undefined : { kind: "exists", object: current };
}

function renderOrReject({ key, render, reject }: Intent, revision: number): StoredObject | undefined {
  try {
    return { key, revision, text: render(revision) };
  } catch (error) {
    reject(error);
    return undefined;
  }
}
