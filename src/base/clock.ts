/**
 * Time as an argument. Production code gets `createSystemClock()`, the simulator its own, so that a
 * six-minute wait takes microseconds in a test and one seed replays every interleaving.
 */
export interface Clock {
  /** Milliseconds that never jump; for deadlines and backoff. */
  now(): number;
  /** Wall time, which jumps; only for timestamps that others will read. */
  wall(): Date;
  /** Resolves after `ms`; rejects with the signal's reason as soon as that aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once, `ms` from now, unless cancelled. A callback must not throw. */
  after(ms: number, callback: () => void): Timer;
}

export interface Timer {
  /** After this the callback will not run; calling it late or twice does nothing. */
  cancel(): void;
}

/** `sleep` for any clock that has `after`. */
export function sleepWith(
  after: (ms: number, callback: () => void) => Timer,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(abortReason(signal));
      return;
    }
    const onAbort = () => {
      timer.cancel();
      if (signal) reject(abortReason(signal));
    };
    const timer = after(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** The signal's reason as an Error, which is what a rejection should carry. */
export function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error(`aborted: ${String(reason)}`);
}

/** `promise`, or the signal's reason as soon as it aborts. The work itself goes on, for others who wait. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(abortReason(signal));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/**
 * Runs `work` with a signal that aborts after `ms` or with the outer one. The deadline's reason is
 * `onDeadline()`, so that callers can tell a timeout from a shutdown.
 */
export async function withDeadline<T>(
  clock: Clock,
  { ms, signal, onDeadline }: { ms: number; signal?: AbortSignal | undefined; onDeadline: () => Error },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const onAbort = () => {
    if (signal) controller.abort(abortReason(signal));
  };
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const timer = clock.after(ms, () => controller.abort(onDeadline()));
  try {
    return await work(controller.signal);
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", onAbort);
  }
}
