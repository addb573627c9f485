import type { SimClock, SimClockOptions, SimScheduler } from "./scheduler.ts";

/**
 * One life of one simulated process: it can be killed or frozen at any await. Whatever it waits for passes through its life:
 * timers by its clock, answers by `bind`. A killed process hears of nothing again, so that no clean-up of it runs, as after
 * kill -9; what it had asked others to do goes on.
 */
export class Life {
  readonly name: string;
  readonly clock: SimClock;
  readonly #scheduler: SimScheduler;
  readonly #onEnd = new Set<() => void>();
  #alive = true;

  constructor(scheduler: SimScheduler, name: string, options: SimClockOptions = {}) {
    this.name = name;
    this.#scheduler = scheduler;
    this.clock = scheduler.createClock(options);
  }

  get isAlive(): boolean {
    return this.#alive;
  }

  get isFrozen(): boolean {
    return this.#scheduler.nowMs < this.clock.frozenUntilMs;
  }

  kill(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.clock.stop();
    for (const end of this.#onEnd) end();
    this.#onEnd.clear();
  }

  freezeFor(ms: number): void {
    this.clock.freezeFor(ms);
  }

  /** Others notice: its connections break, its locks are free. */
  onKill(listener: () => void): void {
    this.#onEnd.add(listener);
  }

  /** `target` as this process sees it: calls of a dead one are not made, and answers reach it only while it runs. */
  bind<T extends object>(target: T): T {
    const bound = new Map<PropertyKey, unknown>();
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        const known = bound.get(name);
        if (known !== undefined) return known;
        const call = (...args: unknown[]): unknown => {
          if (!this.#alive) return never();
          const answer: unknown = Reflect.apply(value, target, args);
          return answer instanceof Promise ? this.deliver(answer) : answer;
        };
        bound.set(name, call);
        return call;
      },
    });
  }

  /** What `answer` settles with, as soon as this process can notice. */
  deliver<T>(answer: Promise<T>): Promise<T> {
    return answer.then(
      (value) => (this.#alive && !this.isFrozen ? value : this.#whenRunning().then(() => value)),
      async (error: unknown) => {
        await this.#whenRunning();
        throw error;
      },
    );
  }

  async #whenRunning(): Promise<void> {
    if (!this.#alive) await never();
    // A sleep of a frozen clock ends when it thaws.
    if (this.isFrozen) await this.clock.sleep(0);
  }
}

function never(): Promise<never> {
  return new Promise<never>(() => undefined);
}
