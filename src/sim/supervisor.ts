import type { Random } from "../base/random.ts";
import type { Logger } from "../base/log.ts";
import type { PromMetrics } from "../base/prom-metrics.ts";
import { noMetrics } from "../base/metrics.ts";
import { AssertionError } from "../base/assert.ts";
import { clientsOver, type ClusterClient } from "../processes/cluster-client.ts";
import { Life } from "./life.ts";
import type { Transport } from "../kube/transport/transport.ts";
import { Link, type LinkState, type Network } from "./link.ts";
import { NO_FAULTS, type NetworkFaults } from "./faulty-transport.ts";
import type { SimScheduler } from "./scheduler.ts";
import type { SimServer } from "./server.ts";
import type { Trace } from "./trace.ts";

/** What one life of a process is made of. */
export interface LifeContext {
  readonly life: Life;
  readonly clock: Life["clock"];
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: PromMetrics;
  /** Its way to the API server. */
  readonly transport: Transport;
  readonly cluster: ClusterClient;
  readonly hostname: string;
}

/** What a test changes about a process. */
export interface SupervisorOptions {
  /** False: it has one life, unless somebody starts it again. */
  readonly restarts?: boolean;
  /** Of its clocks; a little wrong, as drawn, where left out. */
  readonly rate?: number;
  readonly wallOffsetMs?: number;
  readonly network?: Network | undefined;
  /** What it has between itself and its network. */
  readonly through?: (network: Transport, life: Life) => Transport;
  readonly metrics?: PromMetrics;
  /** Of a life that was not killed, with what it failed with. */
  readonly onEnd?: (error: unknown) => void;
}

export interface SupervisorDeps {
  readonly scheduler: SimScheduler;
  readonly server: SimServer;
  readonly random: Random;
  readonly trace: Trace;
  /** What is written to stderr. */
  readonly log: (name: string) => Logger;
  /** A defect: an assertion that failed, an error nobody handled. */
  readonly onDefect: (who: string, error: unknown) => void;
}

/** Measures nothing, and renders that. */
const NO_PROM_METRICS: PromMetrics = { ...noMetrics, contentType: "text/plain", render: async () => "" };

/** systemd's and the kubelet's pauses are longer; shorter ones find more. */
const RESTART_MS = 2_000;

/** A process that is started again when it ends: production code with a clock, a network and a life of its own. */
export class Supervisor {
  readonly name: string;
  readonly #deps: SupervisorDeps;
  readonly #work: (context: LifeContext, signal: AbortSignal) => Promise<void>;
  readonly #options: SupervisorOptions;
  #lives = 0;
  #life: Life | undefined;
  #link: Link | undefined;
  #stop = new AbortController();
  /** Of all lives. */
  readonly #stops: AbortController[] = [];
  #state: LinkState = "up";
  #faults: NetworkFaults = NO_FAULTS;
  #wanted = false;

  constructor(
    deps: SupervisorDeps,
    name: string,
    work: (context: LifeContext, signal: AbortSignal) => Promise<void>,
    options: SupervisorOptions = {},
  ) {
    this.#deps = deps;
    this.name = name;
    this.#work = work;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#life?.isAlive ?? false;
  }

  /** How often it was started. */
  get lives(): number {
    return this.#lives;
  }

  /** It runs, and nothing is in its way: neither its network nor a freeze. */
  get isUnhindered(): boolean {
    return this.isRunning && this.#state === "up" && this.#faults === NO_FAULTS && !this.#life?.isFrozen;
  }

  /** Of the present life, as it knows it: sent, and no answer has reached it. */
  get requestsUnderWay(): number {
    return this.#link?.requestsUnderWay ?? 0;
  }

  start(): void {
    this.#wanted = true;
    if (this.isRunning) return;
    const { scheduler, server, random: parent, trace } = this.#deps;
    const random = parent.fork(`${this.name} ${this.#lives++}`);
    // Quartz is wrong by less than a hundredth of this; leases must bear more.
    const { rate = 0.998 + random.float() * 0.004, wallOffsetMs = 0, network } = this.#options;
    const { through = (wire) => wire } = this.#options;
    const life = new Life(scheduler, this.name, { rate, wallOffsetMs });
    const wire = { wireClock: scheduler.createClock(), random: random.fork("network"), network };
    const link = new Link(life, server.transport, wire);
    link.set(this.#state);
    link.faults = this.#faults;
    this.#life = life;
    this.#link = link;
    this.#stop = new AbortController();
    this.#stops.push(this.#stop);
    const { clock } = life;
    const { metrics = NO_PROM_METRICS } = this.#options;
    const world = { clock, random, log: this.#deps.log(this.name), metrics };
    const options = { server: "https://sim", component: this.name, qps: undefined, burst: undefined };
    const transport = through(link.transport, life);
    const cluster = clientsOver(world, transport, options);
    trace.add(this.name, "starts");
    const { signal } = this.#stop;
    const running = life.deliver(
      this.#work({ ...world, life, transport, cluster, hostname: this.name }, signal).then(
        () => undefined,
        (error: unknown) => error ?? new Error("failed without an error"),
      ),
    );
    void running.then((error) => this.#ended(life, signal.aborted, error));
  }

  /** kill -9; it stays down until `start`. */
  kill(): void {
    this.#wanted = false;
    if (!this.isRunning) return;
    this.#deps.trace.add(this.name, "is killed");
    this.#life?.kill();
  }

  /** SIGTERM: it finishes what it is at. */
  stop(): void {
    this.#wanted = false;
    this.#stop.abort(new Error("SIGTERM"));
  }

  /**
   * Of a world that is over. Node keeps every signal made of others that somebody listens to, and with it all that the listener
   * reaches, until one of them aborts: 7 MB a world.
   */
  end(): void {
    this.#wanted = false;
    this.#life?.kill();
    for (const stop of this.#stops) stop.abort(new Error("the world is over"));
  }

  freezeFor(ms: number): void {
    this.#life?.freezeFor(ms);
  }

  jumpWall(byMs: number): void {
    this.#life?.clock.jumpWall(byMs);
  }

  setLink(state: LinkState): void {
    this.#state = state;
    this.#link?.set(state);
  }

  setFaults(faults: NetworkFaults): void {
    this.#faults = faults;
    if (this.#link !== undefined) this.#link.faults = faults;
  }

  #ended(life: Life, wasAsked: boolean, error: unknown): void {
    const why = error instanceof Error ? error.message : "";
    this.#deps.trace.add(this.name, `ends${why === "" ? "" : `: ${why}`}`);
    if (error instanceof AssertionError || (error instanceof TypeError && !wasAsked))
      this.#deps.onDefect(this.name, error);
    life.kill();
    this.#options.onEnd?.(error);
    if (!this.#wanted || this.#options.restarts === false) return;
    this.#deps.scheduler.createClock().after(RESTART_MS, () => {
      if (this.#wanted) this.start();
    });
  }
}
