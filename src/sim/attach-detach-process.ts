import { createCaches } from "../attach-detach/caches.ts";
import { createAttachDetachController, type AttachDetachController } from "../attach-detach/controller.ts";
import type { AttachDetachOptions } from "../attach-detach/options.ts";
import type { Clock } from "../base/clock.ts";
import { createEventRecorder } from "../kube/events/events.ts";
import type { LeaseNotes } from "../kube/election/lease-notes.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";
import type { Program, ProgramContext } from "./program.ts";
import type { ScriptedTransport } from "./scripted-transport.ts";

export interface ProcessOptions {
  readonly controller: AttachDetachOptions;
  readonly plugins: readonly AttachablePlugin[];
  /** What stands on the Lease, shared by all lives. Absent: nobody holds one. */
  readonly lease?: SimLease | undefined;
  /** False: a replica that stands by. It has its caches, and leads when told. */
  readonly leading: boolean;
}

export interface SimLease {
  note?: string | undefined;
  /** How long the server takes to answer what is on it. */
  readInMs?: number;
}

type Work = (context: ProgramContext, signal: AbortSignal) => Promise<void>;

/** One life of a controller process: its own connection, caches, events and metrics. */
export class AttachDetachProcess {
  readonly program: Program;
  /** False stands for a lost lease. */
  mayAct = true;
  readonly #options: ProcessOptions;
  #controller: AttachDetachController | undefined;
  #lead: () => void = () => undefined;
  #carried: (() => string | undefined) | undefined;

  constructor(launch: (work: Work) => Program, options: ProcessOptions) {
    this.#options = options;
    this.program = launch((context, signal) => this.#run(context, signal));
  }

  get controller(): AttachDetachController {
    if (this.#controller === undefined) throw new Error("the controller was never started");
    return this.#controller;
  }

  get transport(): ScriptedTransport {
    return this.program.transport;
  }

  lead(): void {
    this.#lead();
  }

  /** Asks it to end, and answers once it has; simulated time must go on meanwhile. */
  stop(): Promise<void> {
    return this.program.stop();
  }

  /** No last words: what is under way may or may not be carried out. */
  kill(): void {
    this.mayAct = false;
    this.program.kill();
  }

  async #run(context: ProgramContext, signal: AbortSignal): Promise<void> {
    const { clock, random } = context;
    const source = { component: "attachdetach-controller", host: "sim" };
    const events = createEventRecorder(context, source);
    const caches = createCaches({ ...context, random: random.fork("caches") });
    const controller = createAttachDetachController(
      {
        ...context,
        ...{ caches, events },
        random: random.fork("controller"),
        plugins: () => this.#options.plugins,
        notes: this.#notes(clock),
        mayAct: () => this.mayAct,
      },
      this.#options.controller,
    );
    this.#controller = controller;
    const quietly = (part: Promise<void>) =>
      part.catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    const led = new Promise<void>((resolve, reject) => {
      this.#lead = () => {
        const parts = [controller.run(signal), this.#renew(clock, signal)].map(quietly);
        Promise.all(parts).then(() => resolve(), reject);
      };
      signal.addEventListener("abort", () => (this.#options.leading ? undefined : resolve()), { once: true });
    });
    const standing = [caches.run(signal), events.run(signal)].map(quietly);
    if (this.#options.leading) this.lead();
    await Promise.all([...standing, led]);
  }

  #notes(clock: Clock): LeaseNotes | undefined {
    const { lease } = this.#options;
    if (lease === undefined) return undefined;
    return {
      async read(signal) {
        await clock.sleep(lease.readInMs ?? 0, signal);
        return lease.note;
      },
      carry: (note) => {
        this.#carried = note;
        return () => (this.#carried = undefined);
      },
    };
  }

  /** What the elector does every two seconds, without its requests: those have tests of their own. */
  async #renew(clock: Clock, signal: AbortSignal): Promise<void> {
    const { lease } = this.#options;
    while (lease !== undefined) {
      await clock.sleep(2_000, signal);
      lease.note = this.#carried?.() ?? lease.note;
    }
  }
}
