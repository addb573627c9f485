import { abortReason } from "../base/clock.ts";

/** Lets so many in at a time, in the order they asked. Those who wait are operations, which are bounded by volumes. */
export type Gate = <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

export function createGate(places: number): Gate {
  let inside = 0;
  const waiting = new Set<() => void>();

  function enter(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(abortReason(signal));
    if (inside < places) {
      inside++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        waiting.delete(start);
        reject(abortReason(signal));
      };
      const start = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      waiting.add(start);
    });
  }

  /** The place goes to the next in line, if there is one. */
  function leave(): void {
    for (const start of waiting) {
      waiting.delete(start);
      start();
      return;
    }
    inside--;
  }

  return async (signal, work) => {
    await enter(signal);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}
