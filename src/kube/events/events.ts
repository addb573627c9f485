import type { ObjectReference } from "kubernetes-types/core/v1.js";
import { backoffMs, jittered } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Metrics } from "../../base/metrics.ts";
import type { Random } from "../../base/random.ts";
import { scrubText } from "../../base/redact.ts";
import type { KubeEvent } from "../api/event.ts";
import type { Client } from "../client/client.ts";
import { isKubeError } from "../errors.ts";
import { correlate, createCorrelation, cutText } from "./event-correlation.ts";
import { EventOutbox } from "./event-outbox.ts";
import { sendEvent, type Sent } from "./event-sender.ts";
import { apiVersionOf, type KubeObject, type Resource } from "../object.ts";

/**
 * Tells people what happened to an object, in its events. A courtesy, never a duty: `record` returns at
 * once and never throws, nothing waits for it, and one request is under way at a time. But it is told in the end: a server
 * that is away or has too much to do is tried for an hour, one event behind the other; only then, past 1,000 that wait, or
 * where the server will never take it, one is counted and dropped.
 *
 * The client should have a limit of its own: in the line of the work, behind thousands, each event would wait for all of it
 * again; and its 429s would take places from the work.
 */
export interface EventRecorder {
  record(event: RecordedEvent): void;
  /** Sends until the signal aborts, then what is left for at most 5 s. */
  run(signal: AbortSignal): Promise<void>;
}

export interface RecordedEvent {
  /** The object it is about; see `referenceTo`. */
  readonly ref: ObjectReference;
  readonly type: "Normal" | "Warning";
  /** UpperCamelCase, one of a closed set: people filter by it. */
  readonly reason: string;
  readonly message: string;
}

export interface EventRecorderDeps {
  readonly client: Pick<Client, "create" | "patch">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface EventSource {
  readonly component: string;
  readonly host: string;
}

/** At 3 kB each, 3 MB: what a burst over 1,000 pods needs, once. */
const OUTBOX_MAX = 1_000;
const FLUSH_MS = 5_000;
/**
 * The pause after a failure, of all events together. A server that is away is left alone for up to half a minute; one that says
 * when to come back is taken at its word, since one request at a time is no load, and growing pauses would starve the rest.
 */
const PAUSE = { initialMs: 1_000, maxMs: 30_000 };
/** Events are kept for an hour; what could not be told by then is no news. */
const NEWS_MS = 60 * 60_000;

export function createEventRecorder(
  { client, clock, random, log, metrics }: EventRecorderDeps,
  source: EventSource,
): EventRecorder {
  const correlation = createCorrelation();
  const outbox = new EventOutbox(OUTBOX_MAX);
  const names = random.fork("event-names");
  const pauses = random.fork("event-retries");
  const report = createReport({ log, metrics });
  let ended = false;

  function record(recorded: RecordedEvent): void {
    const event = toEvent(recorded, { source, suffix: hex16(names), wall: clock.wall() });
    const correlated = correlate(correlation, event, clock.now());
    if (correlated.kind === "rate-limited") report.dropped("rate-limited");
    else if (ended) report.dropped("stopped");
    else report.queued(outbox.put({ ...correlated, atMs: clock.now() }), outbox.size);
  }

  async function run(signal: AbortSignal): Promise<void> {
    const abandon = new AbortController();
    const onStop = () =>
      clock.after(FLUSH_MS, () => abandon.abort(new Error("events: no time left to flush")));
    let flushTimer: ReturnType<Clock["after"]> | undefined = signal.aborted ? onStop() : undefined;
    const onAbort = () => (flushTimer = onStop());
    signal.addEventListener("abort", onAbort, { once: true });
    for (let failures = 0; !abandon.signal.aborted;) {
      await outbox.filled(signal);
      const next = outbox.shift();
      if (next === undefined) break;
      const result = await sendEvent(client, next, abandon.signal);
      failures = result.kind === "unreachable" ? failures + 1 : 0;
      // Once asked to end, a failure is final.
      const again = result.kind === "unreachable" && !signal.aborted && clock.now() - next.atMs < NEWS_MS;
      if (!again) report.sent(result, next.event);
      else {
        outbox.putBack(next);
        report.delayed(result.error, outbox.size);
        const waitMs = isKubeError(result.error, "TooManyRequests")
          ? Math.max(result.retryAfterMs, PAUSE.initialMs)
          : Math.max(result.retryAfterMs, backoffMs(failures, PAUSE));
        // Jitter only lengthens: Retry-After is a promise not to come back sooner. A stop ends the wait.
        await clock.sleep(jittered(waitMs, 0.5, pauses), signal).catch(() => undefined);
      }
    }
    signal.removeEventListener("abort", onAbort);
    flushTimer?.cancel();
    ended = true;
    while (outbox.shift() !== undefined) report.dropped("stopped");
  }

  return { record, run };
}

/** Objects in lists carry neither kind nor apiVersion: the resource knows them. */
export function referenceTo<T extends KubeObject>(resource: Resource<T>, { metadata }: T): ObjectReference {
  const { namespace, name, uid, resourceVersion } = metadata;
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
}

function toEvent(
  { ref, type, reason, message }: RecordedEvent,
  { source, suffix, wall }: { source: EventSource; suffix: string; wall: Date },
): KubeEvent {
  // metav1.Time has whole seconds.
  const time = wall.toISOString().replace(/\.\d+Z$/, "Z");
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      // 253 is the longest name; the dot and 16 digits take 17 of them.
      name: `${(ref.name ?? "").slice(0, 236)}.${suffix}`,
      // Where the API server wants events about cluster-scoped objects.
      namespace: ref.namespace ?? "default",
    },
    involvedObject: ref,
    type,
    reason,
    message: cutText(scrubText(message)),
    source: { ...source },
    reportingComponent: source.component,
    reportingInstance: source.host,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

function hex16(random: Random): string {
  return Array.from({ length: 16 }, () => random.int(16).toString(16)).join("");
}

/** Counts every event lost, and logs when losing begins and ends. */
function createReport({ log, metrics }: { log: Logger; metrics: Metrics }) {
  const drops = metrics.counter({
    name: "mooring_events_dropped_total",
    help: "Events not written, by why: rate-limited, queue-full, rejected, unreachable, stopped.",
    labels: ["reason"],
  });
  let [full, failing, late] = [false, false, false];
  return {
    delayed(error: unknown, waiting: number): void {
      if (!late) log.warn("events delayed: cannot write, tried again", { error, waiting });
      late = true;
    },
    dropped: (reason: "rate-limited" | "stopped") => drops.inc({ reason }),
    queued(accepted: boolean, waiting: number): void {
      if (!accepted) drops.inc({ reason: "queue-full" });
      if (!accepted && !full) log.warn("events dropped: queue full", { waiting });
      // Half empty again, not one place: otherwise each event sent would end the loss and the next begin it.
      full = full ? waiting > OUTBOX_MAX / 2 : !accepted;
    },
    sent(result: Sent, { involvedObject, reason }: KubeEvent): void {
      if (result.kind !== "sent") drops.inc({ reason: result.kind });
      if (result.kind !== "sent" && !failing) {
        log.warn("events dropped: cannot write", {
          cause: result.kind,
          error: result.error,
          involvedObject,
          reason,
        });
      }
      failing = result.kind !== "sent";
      if (result.kind === "sent") late = false;
    },
  };
}
