import { abortReason, withDeadline, type Clock } from "../base/clock.ts";
import { CsiError } from "../csi/errors.ts";
import type { Host } from "./host.ts";

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

/**
 * One lock an object, first come first served. Bounded by the calls in flight. The controller service and every node
 * service of a pool work on the same images, so a volume is locked twice: within this process, and by the kernel on
 * its directory, which `directoryOf` names; undefined for what only one process of the pool ever touches.
 */
export function createLocks(
  { clock, host }: { readonly clock: Clock; readonly host: Host },
  directoryOf: (key: string) => string | undefined,
): Locks {
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
        reject(busyError(keys.filter((key) => !isFree(key)).map(({ key }) => key)));
      });
      waiting.add(waiter);
    });
  }

  async function takeAcross({ key, shared: share = false }: LockKey) {
    const directory = directoryOf(key);
    if (directory === undefined) return undefined;
    const deadline = { ms: LOCK_WAIT_MS, onDeadline: () => busyError([key]) };
    return withDeadline(clock, deadline, async (signal) => {
      try {
        return await host.files.lock(directory, { shared: share, signal });
      } catch (error) {
        throw signal.aborted ? abortReason(signal) : error;
      }
    });
  }

  return {
    async hold(keys, work) {
      if (keys.every(isFree)) take(keys);
      else await wait(keys);
      const releases: (() => Promise<void>)[] = [];
      try {
        // In order of key, so that two processes never wait for each other in a circle.
        for (const key of [...keys].sort((a, b) => (a.key < b.key ? -1 : 1))) {
          const across = await takeAcross(key);
          if (across !== undefined) releases.push(across);
        }
        return await work();
      } finally {
        for (const across of releases) await across();
        release(keys);
      }
    },
  };
}

function busyError(keys: readonly string[]): CsiError {
  return new CsiError("ABORTED", `another call is at work on ${keys.join(", ") || "it"}; try again later`);
}
