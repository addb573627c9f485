import type { Clock } from "../base/clock.ts";
import type { NetworkFaults } from "./faulty-transport.ts";
import type { Supervisor } from "./supervisor.ts";

export interface HandoverDeps {
  readonly clock: Clock;
  /** The replicas of Mooring's controller. */
  readonly ours: readonly Supervisor[];
  readonly original: Supervisor;
  /** Whether the machine that they run on has power. */
  readonly isOn: () => boolean;
}

export interface HandoverOptions {
  /** Without SIGTERM. */
  readonly kill: boolean;
  /** What goes wrong between the original and the server. */
  readonly faults: NetworkFaults;
}

const LOOK_MS = 1_000;
/** The grace of a pod, after which its kubelet kills it. */
const GRACE_MS = 30_000;
/** What had left a killed process may be carried out 20 s later; nobody restarts a control plane faster than that. */
const PAUSE_MS = 25_000;

/**
 * An operator who replaces Mooring's controller by upstream's and goes back, by the one rule of the guide: all of one have ended
 * before the other is started. Only the last of several orders counts.
 */
export class Handover {
  readonly #deps: HandoverDeps;
  #wanted: "ours" | "original" = "ours";
  /** From the order to end them until they were started again. */
  #isAway = false;
  /** Since it was started, and until its end was asked for; whatever became of its machine meanwhile. */
  #hasOriginal = false;
  #changing: Promise<void> = Promise.resolve();

  constructor(deps: HandoverDeps) {
    this.#deps = deps;
  }

  /** Whether ours are wanted, which may be before they run again. */
  get isOurs(): boolean {
    return this.#wanted === "ours";
  }

  /** Whether somebody else than the operator may start the process. */
  mayStart(name: string): boolean {
    return !this.#isAway || !this.#deps.ours.some((process) => process.name === name);
  }

  /** Settles once the original has been started, unless ours are wanted again by then. */
  toOriginal({ kill, faults }: HandoverOptions): Promise<void> {
    const { ours, original } = this.#deps;
    this.#isAway = true;
    return this.#change("original", async () => {
      await this.#end(ours, kill);
      await this.#power();
      original.setFaults(faults);
      if (this.isOurs) return;
      this.#hasOriginal = true;
      original.start();
    });
  }

  toOurs({ kill }: Pick<HandoverOptions, "kill">): Promise<void> {
    const { ours, original } = this.#deps;
    if (this.isOurs) return this.#changing;
    return this.#change("ours", async () => {
      this.#hasOriginal = false;
      if (original.isRunning) await this.#end([original], kill);
      await this.#power();
      if (!this.isOurs) return;
      this.#isAway = false;
      for (const process of ours) process.start();
    });
  }

  /** The machine has lost its power, and with it the original; ours are the world's to end. */
  powerOff(): void {
    this.#deps.original.kill();
  }

  /** What ran there starts with it; ours where `mayStart` says so. */
  powerOn(): void {
    if (this.#hasOriginal) this.#deps.original.start();
  }

  async #power(): Promise<void> {
    const { clock, isOn } = this.#deps;
    while (!isOn()) await clock.sleep(LOOK_MS);
  }

  #change(wanted: "ours" | "original", work: () => Promise<void>): Promise<void> {
    this.#wanted = wanted;
    this.#changing = this.#changing.then(work);
    return this.#changing;
  }

  async #end(processes: readonly Supervisor[], kill: boolean): Promise<void> {
    const { clock } = this.#deps;
    for (const process of processes) if (!kill) process.stop();
    for (let waitedMs = 0; !kill && waitedMs < GRACE_MS; waitedMs += LOOK_MS) {
      if (!processes.some(({ isRunning }) => isRunning)) break;
      await clock.sleep(LOOK_MS);
    }
    for (const process of processes) process.kill();
    await clock.sleep(PAUSE_MS);
  }
}
