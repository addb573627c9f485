import type { KubeEvent } from "../api/event.ts";
import { LeastRecentlyUsed } from "./event-cache.ts";

/**
 * Keeps a controller that repeats itself from filling the API server: the same event again becomes a
 * higher count, many that differ only in their message become one, and an object that is talked about
 * too much falls silent. The numbers are client-go's, so both read alike in `kubectl describe`.
 */
export interface CorrelationLimits {
  /** Different messages of one kind of event, within the window, before the rest is combined. */
  readonly similarMax: number;
  readonly similarWindowMs: number;
  /** Events about one object from one source: at once, and one more each `refillMs`. */
  readonly burst: number;
  readonly refillMs: number;
  /** Entries of each of the three memories. At some 500 bytes each that is 6 MB when all are full. */
  readonly entriesMax: number;
}

const CLIENT_GO_LIMITS: CorrelationLimits = {
  similarMax: 10,
  similarWindowMs: 600_000,
  burst: 25,
  refillMs: 300_000,
  entriesMax: 4_096,
};

/** What was said before. Changed in place by `correlate`. */
export interface Correlation {
  readonly limits: CorrelationLimits;
  readonly similar: LeastRecentlyUsed<{ messages: Set<string>; lastMs: number }>;
  readonly written: LeastRecentlyUsed<KubeEvent>;
  readonly buckets: LeastRecentlyUsed<{ tokens: number; filledMs: number }>;
}

export type Correlated =
  /** Said for the first time: a new object. */
  | { readonly kind: "create"; readonly event: KubeEvent }
  /** Said before: `event` carries the name it has there and the new count. */
  | { readonly kind: "update"; readonly event: KubeEvent }
  | { readonly kind: "rate-limited" };

export function createCorrelation(limits: Partial<CorrelationLimits> = {}): Correlation {
  const all = { ...CLIENT_GO_LIMITS, ...limits };
  return {
    limits: all,
    similar: new LeastRecentlyUsed(all.entriesMax),
    written: new LeastRecentlyUsed(all.entriesMax),
    buckets: new LeastRecentlyUsed(all.entriesMax),
  };
}

/** `event` has a name of its own and a count of 1; `nowMs` is monotonic. */
export function correlate(correlation: Correlation, event: KubeEvent, nowMs: number): Correlated {
  const { event: combined, key } = combineSimilar(correlation, event, nowMs);
  const before = correlation.written.get(key);
  const counted = before === undefined ? combined : countUp(before, combined);
  // Remembered even if it is not sent: the next that is sent then tells the true count.
  correlation.written.set(key, counted);
  if (!spendToken(correlation, event, nowMs)) return { kind: "rate-limited" };
  return { kind: before === undefined ? "create" : "update", event: counted };
}

/** Past `similarMax` messages, the event stands for all of its kind, under a key without the message. */
function combineSimilar(
  { limits, similar }: Correlation,
  event: KubeEvent,
  nowMs: number,
): { event: KubeEvent; key: string } {
  const kindKey = JSON.stringify([objectKey(event), event.type, event.reason]);
  const known = similar.get(kindKey);
  const fresh = known === undefined || nowMs - known.lastMs > limits.similarWindowMs;
  const messages = fresh ? new Set<string>() : known.messages;
  const message = event.message ?? "";
  const isOneTooMany = !messages.has(message) && messages.size >= limits.similarMax;
  if (!isOneTooMany) messages.add(message);
  similar.set(kindKey, { messages, lastMs: nowMs });
  if (!isOneTooMany) return { event, key: JSON.stringify([kindKey, message]) };
  return {
    event: { ...event, message: cutText(`(combined from similar events): ${message}`) },
    key: kindKey,
  };
}

function countUp(before: KubeEvent, event: KubeEvent): KubeEvent {
  return {
    ...event,
    metadata: before.metadata,
    count: (before.count ?? 0) + 1,
    ...(before.firstTimestamp !== undefined && { firstTimestamp: before.firstTimestamp }),
  };
}

function spendToken({ limits, buckets }: Correlation, event: KubeEvent, nowMs: number): boolean {
  const key = objectKey(event);
  const bucket = buckets.get(key) ?? { tokens: limits.burst, filledMs: nowMs };
  const tokens = Math.min(limits.burst, bucket.tokens + (nowMs - bucket.filledMs) / limits.refillMs);
  const allowed = tokens >= 1;
  buckets.set(key, { tokens: allowed ? tokens - 1 : tokens, filledMs: nowMs });
  return allowed;
}

/** Who speaks about which object. */
function objectKey({ source, involvedObject: object }: KubeEvent): string {
  const { apiVersion, kind, namespace, name, uid, fieldPath } = object;
  return JSON.stringify([source?.component, source?.host, apiVersion, kind, namespace, name, uid, fieldPath]);
}

/** The longest message the newer events API accepts; longer ones are of no use in `kubectl describe` either. */
const MESSAGE_BYTES_MAX = 1_024;

/** Cut to 1,024 bytes of UTF-8, never in the middle of a character. */
export function cutText(text: string): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= MESSAGE_BYTES_MAX) return text;
  let end = MESSAGE_BYTES_MAX - ELLIPSIS.length;
  // Bytes 10xxxxxx continue a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.subarray(0, end)) + ELLIPSIS;
}

const ELLIPSIS = "...";
