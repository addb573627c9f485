/**
 * How many requests a client keeps in flight, decided from what the server shows (pure).
 *
 * Upstream limits itself to a fixed rate: 20 requests a second take 38 s for 500 attaches on a server
 * that could do them in 1 s, and still too much on one that is drowning. Here the number in flight grows
 * while it is used and the latency stays near the best seen, and shrinks when latency doubles or the
 * server says no. Latency is what a queue in the server looks like from outside.
 *
 * The best latency must be measured without our own queue in it, or it creeps up with the queue it is
 * meant to reveal. So every 10 s the limit drops to a quarter for a moment, and what is seen then counts.
 */
export interface ConcurrencyState {
  /** Fractional, so that it can grow by a part of one. `limitOf` is what applies. */
  readonly limit: number;
  /** Fastest answer since the last probe: what the server takes when nobody waits. */
  readonly baselineMs: number;
  /** Weighted mean of recent answers, 1/8 a sample. */
  readonly recentMs: number;
  /** No second cut before this: all requests in flight at the first tell of the same congestion. */
  readonly nextCutAtMs: number;
  /** Until the first sign of congestion the limit doubles a round trip instead of adding one. */
  readonly slowStart: boolean;
  readonly probe: Probe;
}

type Probe =
  | { readonly kind: "due"; readonly atMs: number }
  | { readonly kind: "running"; readonly untilMs: number; readonly bestMs: number };

export type Outcome =
  /** An answer, also one like 404: the server works. */
  | "answered"
  /** 429, 503, 504 or a deadline: the server has too much to do. */
  | "overloaded"
  /** Told us nothing about load: a refused connection, an abort, a list whose time depends on its size. */
  | "no-sample";

export const CONCURRENCY_MIN = 2;
/**
 * Where a client begins, and what latency alone never cuts below: on a server that others keep busy it is their queue that
 * we see, and giving way to it would end at nothing. A busy server serves its clients by how much each has in flight:
 * beside a load of 32, 16 of ours let a burst of 1,500 volumes wait 5.3 s for their requests and 48 let it wait 2.7 s; all
 * were attached after 15 s in both, because the load got less (one run each, on a busy machine). A kube-apiserver takes
 * 200 writes at once by default; only its own word, a 429 or a deadline, takes us lower.
 */
export const LATENCY_CUT_MIN = 48;
/** Above the 250 streams that an HTTP/2 server commonly allows a connection, more in flight only queue. */
export const CONCURRENCY_MAX = 250;

/** Below this nobody can tell a queue from a pause of the garbage collector. */
const LATENCY_SLACK_MS = 10;
const PROBE_EVERY_MS = 10_000;
const PROBE_SHARE = 4;

export function initialConcurrency(nowMs: number): ConcurrencyState {
  return {
    limit: LATENCY_CUT_MIN,
    baselineMs: Infinity,
    recentMs: 0,
    nextCutAtMs: -Infinity,
    slowStart: true,
    probe: { kind: "due", atMs: nowMs + PROBE_EVERY_MS },
  };
}

/** How many may be in flight now. */
export function limitOf({ limit, probe }: ConcurrencyState): number {
  return Math.max(CONCURRENCY_MIN, Math.floor(probe.kind === "running" ? limit / PROBE_SHARE : limit));
}

export function observe(
  state: ConcurrencyState,
  { outcome, latencyMs, saturated }: { outcome: Outcome; latencyMs: number; saturated: boolean },
  nowMs: number,
): ConcurrencyState {
  if (outcome === "no-sample") return state;
  if (outcome === "overloaded") return cut(state, { factor: 0.5, min: CONCURRENCY_MIN }, nowMs);
  const measured = measure(state, latencyMs, nowMs);
  if (measured.probe.kind === "running") return measured;
  if (measured.recentMs > 2 * measured.baselineMs + LATENCY_SLACK_MS)
    return cut(measured, { factor: 0.9, min: LATENCY_CUT_MIN }, nowMs);
  // An unused limit tells nothing: growing it then would let the next burst through unchecked.
  return saturated ? grow(measured) : measured;
}

function measure(state: ConcurrencyState, latencyMs: number, nowMs: number): ConcurrencyState {
  const first = state.baselineMs === Infinity;
  const recentMs = first ? latencyMs : state.recentMs + (latencyMs - state.recentMs) / 8;
  const baselineMs = Math.min(state.baselineMs, latencyMs);
  const { probe } = state;
  if (probe.kind === "due") {
    if (nowMs < probe.atMs) return { ...state, recentMs, baselineMs };
    // Long enough for what is in flight to leave and for a few that start after it to come back.
    return {
      ...state,
      recentMs,
      baselineMs,
      probe: { kind: "running", untilMs: nowMs + 3 * recentMs, bestMs: Infinity },
    };
  }
  const bestMs = Math.min(probe.bestMs, latencyMs);
  if (nowMs < probe.untilMs) return { ...state, probe: { ...probe, bestMs } };
  // The recent mean starts again from the baseline too: it still holds the queue that the probe drained.
  return {
    ...state,
    baselineMs: bestMs,
    recentMs: bestMs,
    probe: { kind: "due", atMs: nowMs + PROBE_EVERY_MS },
  };
}

function grow(state: ConcurrencyState): ConcurrencyState {
  const step = state.slowStart ? 1 : 1 / state.limit;
  return { ...state, limit: Math.min(CONCURRENCY_MAX, state.limit + step) };
}

function cut(
  state: ConcurrencyState,
  { factor, min }: { readonly factor: number; readonly min: number },
  nowMs: number,
): ConcurrencyState {
  if (nowMs < state.nextCutAtMs) return { ...state, slowStart: false };
  // What an overload took is given back by growth alone.
  const limit = Math.max(Math.min(min, state.limit), state.limit * factor);
  const pauseMs = Math.max(state.recentMs, 100);
  return { ...state, limit, slowStart: false, nextCutAtMs: nowMs + pauseMs };
}
