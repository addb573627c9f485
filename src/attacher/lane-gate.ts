import { abortReason } from "../base/clock.ts";
import type { Operation } from "./plan.ts";

/** How a pass ended, as far as it says something about the driver's health. */
export type LaneOutcome = "answered" | "overloaded";

export interface Permit {
  /** To be called exactly once. */
  done(outcome: LaneOutcome): void;
}

/**
 * Divides the workers between attaches and detaches. Upstream has one pool, and a thousand detaches that hang fill it: no
 * pod anywhere gets a volume (external-attacher #761).
 *
 * - together never more than `workers`;
 * - each lane begins with half of them, and keeps a fifth whatever happens;
 * - a lane whose calls are answered grows, one more each time all of its workers got an answer, up to all but the other's
 *   fifth; a call without an answer halves it. So what hangs shrinks to its fifth, and what works takes over the rest.
 *
 * It cannot take a worker back: a lane that grew and then hangs keeps what it has until `--timeout`.
 */
export class LaneGate {
  readonly #workers: number;
  readonly #floor: number;
  readonly #running: Record<Operation, number> = { attach: 0, detach: 0 };
  readonly #limits: Record<Operation, number>;
  /** As many as there are workers in the lane, who each hold one key. */
  readonly #waiting: Record<Operation, Set<() => void>> = { attach: new Set(), detach: new Set() };
  #lastStarted: Operation = "detach";

  constructor(workers: number) {
    this.#workers = workers;
    this.#floor = Math.max(1, Math.floor(workers / 5));
    const half = Math.max(1, Math.floor(workers / 2));
    this.#limits = { attach: half, detach: half };
  }

  /** The most that one lane can ever have at once. */
  get laneMax(): number {
    return Math.max(1, this.#workers - this.#floor);
  }

  limit(operation: Operation): number {
    return Math.floor(this.#limits[operation]);
  }

  running(operation: Operation): number {
    return this.#running[operation];
  }

  acquire(operation: Operation, signal: AbortSignal): Promise<Permit> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(abortReason(signal));
        return;
      }
      const onAbort = () => {
        this.#waiting[operation].delete(start);
        reject(abortReason(signal));
      };
      const start = () => {
        signal.removeEventListener("abort", onAbort);
        resolve({ done: (outcome) => this.#done(operation, outcome) });
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting[operation].add(start);
      this.#startWaiting();
    });
  }

  #done(operation: Operation, outcome: LaneOutcome): void {
    this.#running[operation]--;
    const limit = this.#limits[operation];
    this.#limits[operation] =
      outcome === "answered" ? Math.min(this.laneMax, limit + 1 / limit) : Math.max(this.#floor, limit / 2);
    this.#startWaiting();
  }

  #startWaiting(): void {
    for (;;) {
      // They take turns where there is only one worker left for both.
      const order: readonly Operation[] =
        this.#lastStarted === "attach" ? ["detach", "attach"] : ["attach", "detach"];
      const next = order.find((operation) => this.#waiting[operation].size > 0 && this.#mayStart(operation));
      if (next === undefined) return;
      const [start] = this.#waiting[next];
      if (start === undefined) return;
      this.#waiting[next].delete(start);
      this.#running[next]++;
      this.#lastStarted = next;
      start();
    }
  }

  #mayStart(operation: Operation): boolean {
    const { attach, detach } = this.#running;
    return attach + detach < this.#workers && this.#running[operation] < this.limit(operation);
  }
}
