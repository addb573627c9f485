import { withDeadline, type Clock } from "../../base/clock.ts";

/** Those who wait for something to become true of a pod: asked again at every change of it, never by a timer. */
export interface Waiters {
  /** Resolves with the first answer of `check`; rejects when the time is over or the signal aborts. */
  wait<T>(podUid: string, check: () => T | undefined, options: WaitOptions): Promise<T>;
  changed(podUid: string): void;
}

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export class DeadlineExceeded extends Error {
  override readonly name = "DeadlineExceeded";
  constructor() {
    super("context deadline exceeded");
  }
}

export function createWaiters(clock: Clock): Waiters {
  /** Bound: one entry a call under way. */
  const waiting = new Map<string, Set<() => void>>();

  return {
    wait: (podUid, check, { timeoutMs, signal }) =>
      withDeadline(clock, { ms: timeoutMs, signal, onDeadline: () => new DeadlineExceeded() }, (deadline) => {
        const mine = waiting.get(podUid) ?? new Set();
        waiting.set(podUid, mine);
        return new Promise<NonNullable<ReturnType<typeof check>>>((resolve, reject) => {
          const end = () => {
            mine.delete(look);
            if (mine.size === 0 && waiting.get(podUid) === mine) waiting.delete(podUid);
            deadline.removeEventListener("abort", onAbort);
          };
          const onAbort = () => {
            end();
            reject(deadline.reason as Error);
          };
          const look = () => {
            const answer = check();
            if (answer === undefined || answer === null) return;
            end();
            resolve(answer);
          };
          mine.add(look);
          deadline.addEventListener("abort", onAbort, { once: true });
          if (deadline.aborted) onAbort();
          else look();
        });
      }),
    changed(podUid) {
      for (const look of [...(waiting.get(podUid) ?? [])]) look();
    },
  };
}
