import type { Clock } from "../base/clock.ts";
import type { NetworkFaults } from "./faulty-transport.ts";
import type { Supervisor } from "./supervisor.ts";

export interface HandoverDeps {
  readonly clock: Clock;
  /** The replicas of Mooring's controller. */
  readonly ours: readonly Supervisor[];
  readonly original: Supervisor;
  /** Whether the machine has power on which all of them run. */
  readonly hasPower: () => boolean;
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
  /** Which may be started by whoever starts processes; none from the order to end one until the other may begin. */
  #turn: "ours" | "original" | "none" = "ours";
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
    return this.#turn === "ours" || !this.#deps.ours.some((process) => process.name === name);
  }

  /** With the power of its machine the original is gone, which is among no processes that others end and start. */
  powerOff(): void {
    this.#deps.original.kill();
  }

  powerOn(): void {
    if (this.#turn === "original") this.#deps.original.start();
  }

  /** Settles once the original has been started, unless ours are wanted again by then. */
  toOriginal({ kill, faults }: HandoverOptions): Promise<void> {
    const { ours, original, hasPower } = this.#deps;
    this.#turn = "none";
    return this.#change("original", async () => {
      await this.#end(ours, kill);
      original.setFaults(faults);
      if (this.isOurs) return;
      this.#turn = "original";
      if (hasPower()) original.start();
    });
  }

  toOurs({ kill }: Pick<HandoverOptions, "kill">): Promise<void> {
    const { ours, original, hasPower } = this.#deps;
    if (this.isOurs) return this.#changing;
    return this.#change("ours", async () => {
      this.#turn = "none";
      if (original.isRunning) await this.#end([original], kill);
      if (!this.isOurs) return;
      this.#turn = "ours";
      if (hasPower()) for (const process of ours) process.start();
    });
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
