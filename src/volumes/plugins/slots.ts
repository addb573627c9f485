import { abortReason } from "../../base/clock.ts";

/** So many at once; the others wait in line, first come first served, until their signal aborts. */
export class Slots {
  #free: number;
  readonly #line = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#line.size;
  }

  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#take(signal);
    try {
      return await work();
    } finally {
      this.#give();
    }
  }

  #take(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(abortReason(signal));
        return;
      }
      if (this.#free > 0) {
        this.#free--;
        resolve();
        return;
      }
      const turn = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#line.delete(turn);
        if (signal) reject(abortReason(signal));
      };
      this.#line.add(turn);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #give(): void {
    const [next] = this.#line;
    if (next) {
      this.#line.delete(next);
      next();
    } else this.#free++;
  }
}
