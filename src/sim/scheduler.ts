import type { Random } from "../base/random.ts";
import { sleepWith, type Clock, type Timer } from "../base/clock.ts";
import { assert } from "../base/assert.ts";

/** Simulated runs start here, so that timestamps in their output look like timestamps. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

/** Of timers at one instant. A thousand were counted when 500 pods come at once; a loop has no end. */
const AT_ONCE_MAX = 100_000;

/**
 * Virtual time for a whole simulated cluster. Nothing waits: time jumps to the next timer. Timers due
 * at the same moment run in an order drawn from the seed, so that seeds explore interleavings, and one
 * seed always gives the same order of everything.
 *
 * That holds as long as every wait in the simulated code goes through a clock made here; a real timer
 * or socket would let the operating system decide the order.
 */
export class SimScheduler {
  readonly #random: Random;
  /** A binary heap, the next one first. Those that were cancelled stay until it is their turn. */
  readonly #due: SimTimer[] = [];
  #nowMs = 0;
  /** How many timers have run at the present instant. */
  #atOnce = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** The clock of one simulated process, with its own errors of time. */
  createClock(options: SimClockOptions = {}): SimClock {
    return new SimClock(this, options);
  }

  /** Runs every timer up to `ms` from now, then leaves the time there. */
  async runFor(ms: number): Promise<void> {
    await this.runUntil(this.#nowMs + ms);
  }

  async runUntil(untilMs: number): Promise<void> {
    await eventLoopTurn();
    for (let timer = this.#takeNext(untilMs); timer !== undefined; timer = this.#takeNext(untilMs)) {
      this.#fire(timer);
      await drainMicrotasks();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Runs until `done()` holds; false once `withinMs` have passed without. */
  async runUntilTrue(done: () => boolean, { withinMs }: { withinMs: number }): Promise<boolean> {
    const untilMs = this.#nowMs + withinMs;
    await eventLoopTurn();
    while (!done()) {
      const timer = this.#takeNext(untilMs);
      if (timer === undefined) {
        this.#nowMs = untilMs;
        return false;
      }
      this.#fire(timer);
      await drainMicrotasks();
    }
    return true;
  }

  #fire({ atMs, callback }: SimTimer): void {
    this.#atOnce = atMs > this.#nowMs ? 0 : this.#atOnce + 1;
    assert(
      this.#atOnce < AT_ONCE_MAX,
      `the time stands still at ${this.#nowMs} ms: somebody waits for nothing`,
    );
    this.#nowMs = Math.max(this.#nowMs, atMs);
    callback?.();
  }

  /** Nothing runs any more, and what waits is let go. */
  end(): void {
    this.#due.length = 0;
  }

  /** Adds a timer in scheduler time; used by the clocks. */
  addAt(atMs: number, callback: () => void): SimTimer {
    assert(Number.isFinite(atMs), `simulated timer at ${atMs}`);
    const timer = new SimTimer(Math.max(atMs, this.#nowMs), this.#random.float(), callback);
    this.#insert(timer);
    return timer;
  }

  /** Has a timer that was due now run later, unless it is cancelled until then. */
  postpone(timer: SimTimer, atMs: number): void {
    timer.atMs = Math.max(atMs, this.#nowMs);
    timer.order = this.#random.float();
    this.#insert(timer);
  }

  #insert(timer: SimTimer): void {
    const due = this.#due;
    let at = due.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = due[above] as SimTimer;
      if (!timer.isBefore(parent)) break;
      due[at] = parent;
      at = above;
    }
    due[at] = timer;
  }

  #takeNext(untilMs: number): SimTimer | undefined {
    for (let next = this.#due[0]; next !== undefined && next.atMs <= untilMs; next = this.#due[0]) {
      this.#removeFirst();
      if (next.callback !== undefined) return next;
    }
    return undefined;
  }

  #removeFirst(): void {
    const due = this.#due;
    const last = due.pop();
    if (last === undefined || due.length === 0) return;
    let at = 0;
    for (let below = 1; below < due.length; below = 2 * at + 1) {
      const right = due[below + 1];
      if (right?.isBefore(due[below] as SimTimer) === true) below++;
      const child = due[below] as SimTimer;
      if (!child.isBefore(last)) break;
      due[at] = child;
      at = below;
    }
    due[at] = last;
  }
}

class SimTimer implements Timer {
  atMs: number;
  /** Drawn at random: decides among timers due at the same moment. */
  order: number;
  /** Undefined once it was cancelled. */
  callback: (() => void) | undefined;

  constructor(atMs: number, order: number, callback: () => void) {
    this.atMs = atMs;
    this.order = order;
    this.callback = callback;
  }

  isBefore(other: SimTimer): boolean {
    return this.atMs === other.atMs ? this.order < other.order : this.atMs < other.atMs;
  }

  cancel(): void {
    this.callback = undefined;
  }
}

/**
 * All promise callbacks run first: Node takes the next tick only once there is none left. A turn of the event loop would do the same
 * and costs 15 us more, of 12,000 timers a run.
 */
function drainMicrotasks(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** Tests that make real keys or read real files wait for them by running no time at all. */
function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export interface SimClockOptions {
  /** How far this process's wall clock is off. */
  readonly wallOffsetMs?: number;
  /** How fast its clocks run: 1.01 gains 1 %. */
  readonly rate?: number;
}

/**
 * The shortest wait. A clock that runs at another rate may show 1e-13 ms less than a deadline when its timer fires; waiting
 * for that rest would leave the time where it is, and whoever waits would do so for ever at one instant.
 */
const TICK_MS = 0.001;

/** A Clock that can be wrong, and whose process can be frozen, as by a paused virtual machine. */
export class SimClock implements Clock {
  readonly #scheduler: SimScheduler;
  readonly #rate: number;
  #wallOffsetMs: number;
  #frozenUntilMs = 0;
  #stopped = false;

  constructor(scheduler: SimScheduler, { wallOffsetMs = 0, rate = 1 }: SimClockOptions) {
    this.#scheduler = scheduler;
    this.#rate = rate;
    this.#wallOffsetMs = wallOffsetMs;
  }

  now(): number {
    return this.#scheduler.nowMs * this.#rate;
  }

  wall(): Date {
    return new Date(EPOCH_MS + this.#wallOffsetMs + this.#scheduler.nowMs * this.#rate);
  }

  after(ms: number, callback: () => void): Timer {
    const waitMs = ms > 0 ? Math.max(ms, TICK_MS) : 0;
    const timer = this.#scheduler.addAt(this.#scheduler.nowMs + waitMs / this.#rate, () => {
      if (this.#stopped) return;
      // A frozen process notices nothing; what came due in the meantime happens when it thaws.
      if (this.#scheduler.nowMs < this.#frozenUntilMs) this.#scheduler.postpone(timer, this.#frozenUntilMs);
      else callback();
    });
    return timer;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepWith((delayMs, callback) => this.after(delayMs, callback), ms, signal);
  }

  /** Of a process that was killed: no timer fires ever again. */
  stop(): void {
    this.#stopped = true;
  }

  get frozenUntilMs(): number {
    return this.#frozenUntilMs;
  }

  /** Freezes this process for `ms`: no timer of its clock fires. */
  freezeFor(ms: number): void {
    this.#frozenUntilMs = Math.max(this.#frozenUntilMs, this.#scheduler.nowMs + ms);
  }

  /** Someone, or NTP, sets the wall clock. The monotonic one does not move. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }
}
