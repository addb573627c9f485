import { assert } from "../../base/assert.ts";

/**
 * Workers that wait for a key, the longest waiting first. As many as there are workers.
 *
 * However many wait with one signal, it has one listener of ours: Node warns of more than ten.
 */
export class IdleWorkers<K> {
  readonly #onLeave: () => void;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting<K>>();
  readonly #crowds = new Map<AbortSignal, Crowd<K>>();

  /** `onLeave` is called when workers were sent away by their signal. */
  constructor(onLeave: () => void) {
    this.#onLeave = onLeave;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves with the key given to it, or undefined when the signal, which has not aborted yet, does. */
  wait(signal: AbortSignal): Promise<K | undefined> {
    return new Promise((resolve) => {
      const waiting = { signal, resolve };
      this.#waiting.add(waiting);
      this.#crowdOf(signal).members.add(waiting);
    });
  }

  /** To the one who waited longest; there must be one. */
  give(key: K): void {
    const [first] = this.#waiting;
    assert(first !== undefined, "a key was given although no worker waits");
    this.#waiting.delete(first);
    const crowd = this.#crowdOf(first.signal);
    crowd.members.delete(first);
    if (crowd.members.size === 0) this.#disband(first.signal, crowd);
    first.resolve(key);
  }

  #crowdOf(signal: AbortSignal): Crowd<K> {
    const known = this.#crowds.get(signal);
    if (known !== undefined) return known;
    const crowd: Crowd<K> = { members: new Set(), onAbort: () => this.#sendAway(signal, crowd) };
    this.#crowds.set(signal, crowd);
    signal.addEventListener("abort", crowd.onAbort, { once: true });
    return crowd;
  }

  #sendAway(signal: AbortSignal, crowd: Crowd<K>): void {
    this.#disband(signal, crowd);
    for (const waiting of crowd.members) {
      this.#waiting.delete(waiting);
      waiting.resolve(undefined);
    }
    this.#onLeave();
  }

  #disband(signal: AbortSignal, crowd: Crowd<K>): void {
    this.#crowds.delete(signal);
    signal.removeEventListener("abort", crowd.onAbort);
  }
}

interface Waiting<K> {
  readonly signal: AbortSignal;
  readonly resolve: (key: K | undefined) => void;
}

/** Those who wait with one signal. */
interface Crowd<K> {
  readonly members: Set<Waiting<K>>;
  readonly onAbort: () => void;
}
