import { abortReason, type Clock } from "../../base/clock.ts";
import { noMetrics, type Metrics } from "../../base/metrics.ts";
import { initialConcurrency, limitOf, observe, type ConcurrencyState, type Outcome } from "./concurrency.ts";
import { createTokenBucket, returnToken, takeToken, type TokenBucket } from "./token-bucket.ts";

/**
 * Lets requests start, in the order they asked, those that are urgent in a line of their own. One a client: all that a
 * process sends to one API server shares it, watches excepted. It queues without a bound of its own, because every waiter
 * is a caller that holds its request already; the work queues before it are what is bounded.
 */
export interface Limiter {
  /** Resolves when the request may start; the caller must then call `done` exactly once. */
  acquire(signal?: AbortSignal, options?: { readonly urgent?: boolean | undefined }): Promise<Permit>;
}

export interface Permit {
  done(outcome: Outcome): void;
}

export interface LimiterOptions {
  /** A fixed rate on top, when the user asked for one (`--kube-api-qps`). */
  readonly qps?: number | undefined;
  /** Default: twice the rate, as client-go's default of 5/10. */
  readonly burst?: number | undefined;
}

/** One place in so many goes to what is urgent while both lines wait: the other goes on at three quarters of its pace. */
const URGENT_EVERY = 4;

export function createLimiter(
  { clock, metrics = noMetrics }: { clock: Clock; metrics?: Metrics | undefined },
  { qps, burst }: LimiterOptions = {},
): Limiter {
  let state: ConcurrencyState = initialConcurrency(clock.now());
  let bucket: TokenBucket | undefined =
    qps === undefined ? undefined : createTokenBucket(qps, burst ?? Math.max(1, 2 * qps), clock.now());
  let inFlight = 0;
  const waiting = new Set<() => void>();
  const urgent = new Set<() => void>();
  /** Places given since the urgent line had its turn. */
  let passedOver = 0;

  metrics.gauge({
    name: "mooring_client_concurrency",
    help: "Requests to the API server: in flight, waiting for a place, and the limit as it stands.",
    labels: ["what"],
    collect(gauge) {
      gauge.set(inFlight, { what: "in-flight" });
      gauge.set(waiting.size + urgent.size, { what: "waiting" });
      gauge.set(limitOf(state), { what: "limit" });
    },
  });

  function startWaiting(): void {
    while (waiting.size + urgent.size > 0 && inFlight < limitOf(state)) {
      const urgentTurn = waiting.size === 0 || (urgent.size > 0 && passedOver >= URGENT_EVERY - 1);
      const line = urgentTurn ? urgent : waiting;
      passedOver = urgentTurn ? 0 : passedOver + 1;
      for (const start of line) {
        line.delete(start);
        inFlight++;
        start();
        break;
      }
    }
  }

  /** Of those who have to wait. */
  function place(line: Set<() => void>, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        line.delete(start);
        if (signal) reject(abortReason(signal));
      };
      const start = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      if (signal?.aborted) {
        reject(abortReason(signal));
        return;
      }
      signal?.addEventListener("abort", onAbort, { once: true });
      line.add(start);
      startWaiting();
    });
  }

  async function token(signal?: AbortSignal): Promise<void> {
    if (bucket === undefined) return;
    const taken = takeToken(bucket, clock.now());
    bucket = taken.bucket;
    if (taken.waitMs === 0) return;
    try {
      await clock.sleep(taken.waitMs, signal);
    } catch (error) {
      bucket = returnToken(bucket);
      throw error;
    }
  }

  return {
    async acquire(signal, options) {
      await token(signal);
      const free = waiting.size + urgent.size === 0 && inFlight < limitOf(state) && signal?.aborted !== true;
      if (free) inFlight++;
      else await place(options?.urgent === true ? urgent : waiting, signal);
      const startedAtMs = clock.now();
      return {
        done(outcome) {
          const saturated = waiting.size + urgent.size > 0 || inFlight >= limitOf(state);
          inFlight--;
          const nowMs = clock.now();
          state = observe(state, { outcome, latencyMs: nowMs - startedAtMs, saturated }, nowMs);
          startWaiting();
        },
      };
    },
  };
}
