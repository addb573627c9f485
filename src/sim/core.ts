import { setMaxListeners } from "node:events";
import { silentLogger, type Logger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import type { Random } from "../base/random.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Client } from "../kube/client/client.ts";
import type { KubeObject, ObjectRef, Resource } from "../kube/object.ts";
import { Objects } from "./objects.ts";
import { SimScheduler, type SimClock } from "./scheduler.ts";
import { SimServer, type SimServerOptions } from "./server.ts";
import { Supervisor, type LifeContext, type SupervisorDeps, type SupervisorOptions } from "./supervisor.ts";
import { Trace, type TraceLine } from "./trace.ts";

export interface CoreOptions {
  readonly server?: SimServerOptions;
  /** Told of every line of the trace as it is written. */
  readonly onLine?: ((line: TraceLine) => void) | undefined;
}

/**
 * What a simulated cluster is made of, whatever runs in it: time, chance, an API server, somebody with every right, and
 * processes that are started, killed and frozen. `World` puts all programs on it; a harness of a test puts one.
 */
export class SimCore {
  readonly random: Random;
  readonly scheduler: SimScheduler;
  /** Of everybody who is no process. */
  readonly clock: SimClock;
  readonly trace: Trace;
  readonly server: SimServer;
  /** What the server has right now, read behind its back. */
  readonly objects: Objects;
  /** Of somebody with a perfect network and every right: the workload. */
  readonly client: Client;
  /** By name. */
  readonly processes = new Map<string, Supervisor>();
  readonly violations: string[] = [];
  readonly #deps: SupervisorDeps;

  constructor(seed: number | string, { server, onLine }: CoreOptions = {}) {
    // Every request and worker listens to the signal of its process.
    setMaxListeners(0);
    this.random = createSeededRandom(seed);
    this.scheduler = new SimScheduler(this.random.fork("scheduler"));
    this.clock = this.scheduler.createClock();
    this.trace = new Trace(() => this.scheduler.nowMs, onLine);
    this.server = new SimServer(this.scheduler, this.random.fork("server"), server);
    this.objects = new Objects(this.server.store);
    const { transport } = this.server;
    this.client = createClient({ transport, clock: this.clock, random: this.random.fork("client") });
    this.#deps = {
      scheduler: this.scheduler,
      server: this.server,
      random: this.random.fork("processes"),
      trace: this.trace,
      log: (name) => this.logOf(name),
      onDefect: (who, error) =>
        this.violate(`${who}: ${error instanceof Error ? error.stack : String(error)}`),
    };
  }

  /** A process that does this when it is started. */
  add(
    name: string,
    work: (context: LifeContext, signal: AbortSignal) => Promise<void>,
    options?: SupervisorOptions,
  ): Supervisor {
    const process = new Supervisor(this.#deps, name, work, options);
    this.processes.set(name, process);
    return process;
  }

  violate(text: string): void {
    this.violations.push(text);
    this.trace.add("VIOLATION", text);
  }

  read<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): T | undefined {
    return this.objects.read(resource, ref);
  }

  /** All of a kind, of every namespace. */
  list<T extends KubeObject>(resource: Resource<T>): T[] {
    return this.objects.list(resource);
  }

  /** Nothing happens any more, and its memory can go. */
  end(): void {
    this.server.kill();
    for (const process of this.processes.values()) process.end();
    this.scheduler.end();
  }

  /** What a process writes to stderr. */
  protected logOf(_name: string): Logger {
    return silentLogger;
  }
}
