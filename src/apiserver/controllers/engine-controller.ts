import type { Outcome } from "../../kube/workqueue/controller.ts";
import type { StoredObject } from "../store/store.ts";

/** What happened to one object, as a controller hears of it. */
export interface Change {
  /** `found`: it was there when the controllers looked at the whole store, at a start or after events were lost. */
  readonly type: "found" | "created" | "updated" | "deleted";
  /** For a deletion: its last words. */
  readonly object: StoredObject;
}

/** One of the loops of this room: changes mark keys, a worker looks at each marked key. */
export interface EngineController {
  /** The whole store is about to be told again as `found`: whatever is remembered of it is void. */
  clear(): void;
  /** Updates indexes and marks keys. Changes of one resource come in order, those of two in any. */
  observe(change: Change): void;
  /** Every index shows every write committed so far when this is called. */
  reconcile(key: string): Promise<Outcome>;
  /** The workers have stopped; no timer may be left. */
  stop?(): void;
}

/** How a controller says that a key wants looking at. */
export interface Marks {
  readonly mark: (key: string) => void;
  /** Of several such times the earliest counts. */
  readonly markAfter: (key: string, ms: number) => void;
}

export const DONE: Outcome = { kind: "done" };
/** Somebody else wrote first, or is about to: look again shortly. No error, nothing to log. */
export const AGAIN: Outcome = { kind: "retry" };
