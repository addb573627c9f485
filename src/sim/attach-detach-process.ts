import { setMaxListeners } from "node:events";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { createPromMetrics } from "../base/prom-metrics.ts";
import type { Random } from "../base/random.ts";
import { createCaches } from "../attach-detach/caches.ts";
import { createAttachDetachController, type AttachDetachController } from "../attach-detach/controller.ts";
import type { AttachDetachOptions } from "../attach-detach/options.ts";
import { createClient } from "../kube/client/api-client.ts";
import { createEventRecorder } from "../kube/events/events.ts";
import type { LeaseNotes } from "../kube/election/lease-notes.ts";
import type { Transport } from "../kube/transport/transport.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";
import { toRequestLine, type Labels } from "./request-lines.ts";
import { ScriptedTransport } from "./scripted-transport.ts";

export interface ProcessDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly labels: Labels;
  /** Of which kinds the watches deliver nothing for now. */
  readonly held: ReadonlySet<string>;
  readonly plugins: readonly AttachablePlugin[];
  /** What stands on the Lease, shared by all lives. Absent: nobody holds one. */
  readonly lease?: SimLease | undefined;
}

export interface SimLease {
  note?: string | undefined;
  /** How long the server takes to answer what is on it. */
  readInMs?: number;
}

type Part = (signal: AbortSignal) => Promise<void>;

/** One life of a controller process: its own connection, caches, events and metrics. */
export class AttachDetachProcess {
  readonly transport: ScriptedTransport;
  readonly controller: AttachDetachController;
  /** False stands for a lost lease. */
  mayAct = true;
  readonly #standing: readonly Part[];
  readonly #leading: readonly Part[];
  readonly #metrics = createPromMetrics();
  readonly #stop = new AbortController();
  #failure: unknown;
  #carried: (() => string | undefined) | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(deps: ProcessDeps, options: AttachDetachOptions) {
    const { clock, random, log, labels, held, plugins } = deps;
    const metrics = this.#metrics;
    this.transport = new ScriptedTransport({ inner: deps.transport, clock, held }, (call) =>
      toRequestLine(call, labels),
    );
    const client = createClient({ transport: this.transport, clock, random: random.fork("client") });
    const source = { component: "attachdetach-controller", host: "sim" };
    const events = createEventRecorder({ client, clock, random, log, metrics }, source);
    const caches = createCaches({ client, clock, random: random.fork("caches"), log, metrics });
    this.controller = createAttachDetachController(
      {
        client,
        caches,
        events,
        clock,
        random: random.fork("controller"),
        log,
        metrics,
        plugins: () => plugins,
        notes: this.#notes(deps),
        mayAct: () => this.mayAct,
      },
      options,
    );
    this.#standing = [(signal) => caches.run(signal), (signal) => events.run(signal)];
    this.#leading = [(signal) => this.controller.run(signal), (signal) => this.#renew(deps, signal)];
  }

  #notes({ lease, clock }: ProcessDeps): LeaseNotes | undefined {
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
  async #renew({ lease, clock }: ProcessDeps, signal: AbortSignal): Promise<void> {
    while (lease !== undefined) {
      await clock.sleep(2_000, signal);
      lease.note = this.#carried?.() ?? lease.note;
    }
  }

  /** A replica that stands by has its caches, and leads later. */
  start({ leading = true }: { readonly leading?: boolean } = {}): void {
    // Every watch and wait of the process listens; Node would call more than ten a leak.
    setMaxListeners(0, this.#stop.signal);
    this.#run(this.#standing);
    if (leading) this.lead();
  }

  lead(): void {
    this.#run(this.#leading);
  }

  #run(parts: readonly Part[]): void {
    const ends = parts.map((part) =>
      part(this.#stop.signal).catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#failure ??= error;
      }),
    );
    this.#ended = Promise.all([this.#ended, ...ends]).then(() => undefined);
  }

  /** Asks it to end, and answers once it has; simulated time must go on meanwhile. */
  stop(): Promise<void> {
    this.#stop.abort(new Error("stopped"));
    return this.#ended;
  }

  /** No last words: what is under way may or may not be carried out. */
  kill(): void {
    this.transport.kill();
    this.mayAct = false;
    this.#stop.abort(new Error("killed"));
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure as Error;
  }

  async metric(name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined> {
    const values = (await this.#metrics.render())
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .filter((line) => Object.entries(labels).every(([key, value]) => line.includes(`${key}="${value}"`)))
      .map((line) => Number(line.slice(line.lastIndexOf(" ") + 1)));
    return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
  }
}
