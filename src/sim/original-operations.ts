import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { VolumeName } from "../volumes/names.ts";

export type OperationName = "attach" | "detach";

/** What an operation excludes: everything of the volume, or, of one for several nodes, what concerns this node. */
export interface OperationKey {
  readonly volume: VolumeName;
  readonly node: string | undefined;
}

interface Operation extends OperationKey {
  readonly name: OperationName;
  readonly isRunning: boolean;
  readonly failures: number;
  readonly failedMs: number;
}

const BACKOFF = { initialMs: 500, maxMs: 122_000 };

/**
 * Which operations of the original controller run or have failed. One that failed is not tried again before its back-off, but the
 * opposite of it is, which also begins the back-off anew.
 */
export class OriginalOperations {
  readonly #clock: Clock;
  #operations: readonly Operation[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isRunning(key: OperationKey): boolean {
    return this.#operations.some((one) => one.isRunning && matches(one, key));
  }

  mayStart(name: OperationName, key: OperationKey): boolean {
    const known = this.#find(key);
    if (known === undefined) return true;
    return !known.isRunning && (known.name !== name || this.#isDue(known));
  }

  /** Only what may start. Settles once it has ended, well or not; what it ends with is told nobody else. */
  async run(name: OperationName, key: OperationKey, work: () => Promise<void>): Promise<void> {
    const known = this.#find(key);
    const failures = known?.name === name ? known.failures : 0;
    const running = { ...key, name, isRunning: true, failures, failedMs: 0 };
    this.#replace(known, running);
    try {
      await work();
      this.#replace(running, undefined);
    } catch {
      const failedMs = this.#clock.now();
      this.#replace(running, { ...running, isRunning: false, failures: failures + 1, failedMs });
    }
  }

  #isDue({ failures, failedMs }: Operation): boolean {
    return this.#clock.now() - failedMs > backoffMs(failures, BACKOFF);
  }

  #find(key: OperationKey): Operation | undefined {
    const found = this.#operations.filter((one) => matches(one, key));
    return found.find((one) => one.isRunning) ?? found.find(({ node }) => node === key.node) ?? found[0];
  }

  #replace(old: Operation | undefined, by: Operation | undefined): void {
    this.#operations = [...this.#operations.filter((one) => one !== old), ...(by === undefined ? [] : [by])];
  }
}

function matches(one: OperationKey, other: OperationKey): boolean {
  const bothSay = one.node !== undefined && other.node !== undefined;
  return one.volume === other.volume && (!bothSay || one.node === other.node);
}
