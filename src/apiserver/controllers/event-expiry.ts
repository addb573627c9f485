import type { Timer } from "../../base/clock.ts";
import { KeyedHeap } from "../../base/heap.ts";
import { fieldAt, parseStored, type ApiObject } from "../objects.ts";
import type { VerbDeps } from "../request.ts";
import type { StoredObject } from "../store/store.ts";
import { DONE, type EngineController, type Marks } from "./engine-controller.ts";
import { fromText, toText } from "./served.ts";
import { deleteSeen } from "./writes.ts";

/** The default of kube-apiserver's --event-ttl. */
const EVENT_TTL_MS = 60 * 60_000;

/**
 * Events go an hour after they were last written. All of them wait on one heap with one alarm for the earliest; the heap
 * is as large as there are events.
 */
export function createEventExpiry(verbs: VerbDeps, { mark }: Marks): EngineController {
  const { store, clock } = verbs;
  const due = new KeyedHeap<string>();
  let alarm: { readonly atMs: number; readonly timer: Timer } | undefined;

  function arm(): void {
    const atMs = due.peek()?.priority;
    if (atMs === alarm?.atMs) return;
    alarm?.timer.cancel();
    alarm = atMs === undefined ? undefined : { atMs, timer: clock.after(atMs - clock.now(), onAlarm) };
  }

  function onAlarm(): void {
    // Rounding may let a timer fire a hair before its time.
    const nowMs = Math.max(clock.now(), alarm?.atMs ?? 0);
    alarm = undefined;
    for (let first = due.peek(); first !== undefined && first.priority <= nowMs; first = due.peek()) {
      due.delete(first.key);
      mark(first.key);
    }
    arm();
  }

  /** When an event from before this start was written is told by its own times; their clock is the wall's. */
  function restMs(object: StoredObject): number {
    const ageMs = clock.wall().getTime() - lastWrittenMs(parseStored(object));
    return Math.min(Math.max(EVENT_TTL_MS - ageMs, 0), EVENT_TTL_MS);
  }

  return {
    clear() {
      for (const { key } of [...due.entries()]) due.delete(key);
    },

    observe({ type, object }) {
      if (object.key.resource !== "events") return;
      const key = toText(object.key);
      if (type === "deleted") due.delete(key);
      else due.set(key, clock.now() + (type === "found" ? restMs(object) : EVENT_TTL_MS), undefined);
      arm();
    },

    async reconcile(key) {
      const stored = store.get(fromText(key));
      // On the heap again: it was written after its hour had struck, and has a new one.
      if (stored !== undefined && !due.has(key)) await deleteSeen(verbs, stored);
      return DONE;
    },

    stop() {
      alarm?.timer.cancel();
      alarm = undefined;
    },
  };
}

/** The latest time in it. That of its creation is the server's own, so an odd clock of a client cannot make it older. */
function lastWrittenMs(event: ApiObject): number {
  const times = [
    event.metadata.creationTimestamp,
    ...(event.metadata.managedFields ?? []).map(({ time }) => time),
    event["lastTimestamp"],
    event["eventTime"],
    fieldAt(event, "series", "lastObservedTime"),
  ].map((time) => (typeof time === "string" ? Date.parse(time) : NaN));
  return Math.max(0, ...times.filter(Number.isFinite));
}
