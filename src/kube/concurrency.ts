/**
 * How many requests a client keeps in flight, decided from what the server shows (pure).
 *
 * Upstream limits itself to a fixed rate: 20 requests a second take 38 s for 500 attaches on a server
 * that could do them in 1 s, and still too much on one that is drowning. Here the number in flight grows
 * while it is used and the latency stays near the best seen, and shrinks when latency doubles or the
 * server says no. Latency is what a queue in the server looks like from outside.
 */
export interface ConcurrencyState {
  /** Fractional, so that it can grow by a part of one; the shell rounds down. */
  readonly limit: number;
  /** Fastest recent answer: what the server takes when nobody waits. Forgotten slowly, 1 % an answer. */
  readonly baselineMs: number | undefined;
  /** Weighted mean of recent answers, 1/8 a sample. */
  readonly recentMs: number;
  /** No second cut before this: all requests in flight at the first tell of the same congestion. */
  readonly nextCutAtMs: number;
  /** Until the first sign of congestion the limit doubles a round trip instead of adding one. */
  readonly slowStart: boolean;
}

export type Outcome =
  /** An answer, also one like 404: the server works. */
  | "answered"
  /** 429, 503, 504 or a deadline: the server has too much to do. */
  | "overloaded"
  /** Told us nothing about load: a refused connection, an abort, a list whose time depends on its size. */
  | "no-sample";

export const CONCURRENCY_MIN = 2;
/** Above the 250 streams that an HTTP/2 server commonly allows a connection, more in flight only queue. */
export const CONCURRENCY_MAX = 250;

const INITIAL: ConcurrencyState = {
  limit: 16,
  baselineMs: undefined,
  recentMs: 0,
  nextCutAtMs: -Infinity,
  slowStart: true,
};

/** Below this nobody can tell a queue from a pause of the garbage collector. */
const LATENCY_SLACK_MS = 10;

export function initialConcurrency(): ConcurrencyState {
  return INITIAL;
}

export function observe(
  state: ConcurrencyState,
  { outcome, latencyMs, saturated }: { outcome: Outcome; latencyMs: number; saturated: boolean },
  nowMs: number,
): ConcurrencyState {
  if (outcome === "no-sample") return state;
  if (outcome === "overloaded") return cut(state, 0.5, nowMs);
  const baselineMs = Math.min(latencyMs, (state.baselineMs ?? latencyMs) * 1.01);
  const recentMs =
    state.baselineMs === undefined ? latencyMs : state.recentMs + (latencyMs - state.recentMs) / 8;
  const measured = { ...state, baselineMs, recentMs };
  if (recentMs > 2 * baselineMs + LATENCY_SLACK_MS) return cut(measured, 0.9, nowMs);
  // An unused limit tells nothing: growing it then would let the next burst through unchecked.
  return saturated ? grow(measured) : measured;
}

function grow(state: ConcurrencyState): ConcurrencyState {
  const step = state.slowStart ? 1 : 1 / state.limit;
  return { ...state, limit: Math.min(CONCURRENCY_MAX, state.limit + step) };
}

function cut(state: ConcurrencyState, factor: number, nowMs: number): ConcurrencyState {
  if (nowMs < state.nextCutAtMs) return { ...state, slowStart: false };
  const limit = Math.max(CONCURRENCY_MIN, state.limit * factor);
  const pauseMs = Math.max(state.recentMs, 100);
  return { ...state, limit, slowStart: false, nextCutAtMs: nowMs + pauseMs };
}
