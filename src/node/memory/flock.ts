import { HostError } from "../host.ts";
import type { Inode } from "./tree.ts";

export interface LockOptions {
  readonly shared: boolean;
  readonly signal: AbortSignal;
}

interface Wait {
  readonly inode: Inode;
  readonly shared: boolean;
  readonly start: () => void;
}

/** flock(2) of a machine in memory: by inode, readers together, writers alone, first come first served. */
export class Flocks {
  readonly #held = new Map<Inode, { readonly shared: boolean; count: number }>();
  readonly #waiting = new Set<Wait>();

  /** The answer releases it; a second call of that does nothing. Rejects with TimedOut when the signal aborts first. */
  async take(inode: Inode, { shared, signal }: LockOptions): Promise<() => void> {
    if (!this.#tryTake(inode, shared)) await this.#wait(inode, { shared, signal });
    const lock = this.#held.get(inode);
    let isHeld = true;
    return () => {
      // After a reboot the lock is another's.
      if (isHeld && this.#held.get(inode) === lock) this.#release(inode);
      isHeld = false;
    };
  }

  /** Locks end with the processes that hold them. */
  clear(): void {
    this.#held.clear();
    this.#waiting.clear();
  }

  #wait(inode: Inode, { shared, signal }: LockOptions): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        if (this.#waiting.delete(wait)) reject(new HostError("TimedOut", "flock was stopped"));
      };
      const start = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const wait: Wait = { inode, shared, start };
      this.#waiting.add(wait);
      signal.addEventListener("abort", onAbort);
      if (signal.aborted) onAbort();
    });
  }

  #tryTake(inode: Inode, shared: boolean): boolean {
    const now = this.#held.get(inode);
    if (now !== undefined && !(now.shared && shared)) return false;
    if (now === undefined) this.#held.set(inode, { shared, count: 1 });
    else now.count++;
    return true;
  }

  #release(inode: Inode): void {
    const now = this.#held.get(inode);
    if (now !== undefined && --now.count === 0) this.#held.delete(inode);
    for (const wait of this.#waiting) {
      if (wait.inode !== inode || !this.#tryTake(inode, wait.shared)) continue;
      this.#waiting.delete(wait);
      wait.start();
    }
  }
}
