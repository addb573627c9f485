import type { Clock } from "../base/clock.ts";
import { CsiError } from "../csi/errors.ts";

export interface LockKey {
  /** `volume/ID`, `snapshot/ID`, `group/ID` or `name/NAME`. */
  readonly key: string;
  /** A source of a copy is read by many at once, and changed by nobody meanwhile. */
  readonly shared?: boolean;
}

export interface Locks {
  /**
   * Runs `work` with all of these held. Taken in one synchronous step, so two calls never hold half of each other's.
   * Waits for at most `LOCK_WAIT_MS`, then answers ABORTED; the lock is held until `work` is really over.
   */
  hold<T>(keys: readonly LockKey[], work: () => Promise<T>): Promise<T>;
}

/** Long enough for a quick call to end and be answered from its result; short against any caller's deadline (10 s). */
export const LOCK_WAIT_MS = 2_000;

interface Waiter {
  readonly keys: readonly LockKey[];
  readonly start: () => void;
}

/** One lock an object, first come first served. Bounded by the calls in flight. */
export function createLocks(clock: Clock): Locks {
  const exclusive = new Set<string>();
  const shared = new Map<string, number>();
  const waiting = new Set<Waiter>();

  const isFree = ({ key, shared: share = false }: LockKey) =>
    !exclusive.has(key) && (share || !shared.has(key));

  function take(keys: readonly LockKey[]): void {
    for (const { key, shared: share = false } of keys) {
      if (share) shared.set(key, (shared.get(key) ?? 0) + 1);
      else exclusive.add(key);
    }
  }

  function release(keys: readonly LockKey[]): void {
    for (const { key, shared: share = false } of keys) {
      const left = (shared.get(key) ?? 0) - 1;
      if (!share) exclusive.delete(key);
      else if (left > 0) shared.set(key, left);
      else shared.delete(key);
    }
    for (const waiter of waiting) {
      if (!waiter.keys.every(isFree)) continue;
      waiting.delete(waiter);
      take(waiter.keys);
      waiter.start();
    }
  }

  function wait(keys: readonly LockKey[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        keys,
        start: () => {
          timer.cancel();
          resolve();
        },
      };
      const timer = clock.after(LOCK_WAIT_MS, () => {
        waiting.delete(waiter);
        const busy = keys.filter((key) => !isFree(key)).map(({ key }) => key);
        reject(
          new CsiError("ABORTED", `another call is at work on ${busy.join(", ") || "it"}; try again later`),
        );
      });
      waiting.add(waiter);
    });
  }

  return {
    async hold(keys, work) {
      if (keys.every(isFree)) take(keys);
      else await wait(keys);
      try {
        return await work();
      } finally {
        release(keys);
      }
    },
  };
}
