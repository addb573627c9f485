import { createEngineControllers } from "../apiserver/controllers/engine-controllers.ts";
import { createHandler } from "../apiserver/handler.ts";
import { createSystemNamespaces } from "../apiserver/namespaces.ts";
import { createMemoryStore, type MemoryStoreOptions } from "../apiserver/store/memory.ts";
import type { ObjectStore } from "../apiserver/store/store.ts";
import { silentLogger } from "../base/log.ts";
import { noMetrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import { KubeError } from "../kube/errors.ts";
import type { Handler } from "../kube/handler.ts";
import { createMemoryTransport } from "../kube/transport/memory-transport.ts";
import type { Transport, TransportRequest, TransportResponse } from "../kube/transport/transport.ts";
import { Life } from "./life.ts";
import type { SimScheduler } from "./scheduler.ts";
import { tellCommits, type Commit } from "./told-store.ts";

export interface Witness {
  committed(commit: Commit): void;
  answered(call: TransportRequest, answer: TransportResponse): void;
}

export interface SimServerOptions {
  /** Whether its controllers run beside its handler: garbage collection, protection, accounts of namespaces. */
  readonly controllers?: boolean;
  readonly history?: MemoryStoreOptions;
  /** What stands before its handler: a server that is not like ours (`other-servers.ts`), or one that a test disturbs. */
  readonly behaves?: ((handler: Handler) => Handler) | undefined;
}

/** A handler and its store, for tests that are the controllers themselves. It remembers as much as a server does. */
export const HANDLER_ALONE: SimServerOptions = { controllers: false, history: {} };

/** How much of the past a watch can ask for: little, so that a client that was away for long hears 410. */
const HISTORY = { historyMsMin: 60_000, historyRevisionsMin: 200 };

/**
 * The embedded API server as a process of the simulated cluster: its handler and its controllers, on a store that outlives
 * them. Killed, it answers nobody and breaks every connection; what it had committed is there at its next start.
 */
export class SimServer {
  readonly store: ObjectStore;
  readonly #scheduler: SimScheduler;
  readonly #random: Random;
  readonly #witnesses: Witness[] = [];
  readonly #options: SimServerOptions;
  #life: Life | undefined;
  #wire: Transport | undefined;
  #stop = new AbortController();
  #lives = 0;

  constructor(scheduler: SimScheduler, random: Random, options: SimServerOptions = {}) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#options = options;
    const { history = HISTORY } = options;
    this.store = tellCommits(createMemoryStore({ clock: scheduler.createClock() }, history), (commit) => {
      for (const witness of this.#witnesses) witness.committed(commit);
    });
  }

  /** Told of every write that is there from now on, and of every answer that leaves the server. */
  witness(witness: Witness): void {
    this.#witnesses.push(witness);
  }

  get isUp(): boolean {
    return this.#wire !== undefined;
  }

  async start(): Promise<void> {
    if (this.#wire !== undefined) return;
    const life = new Life(this.#scheduler, "apiserver");
    const random = this.#random.fork(`life ${this.#lives++}`);
    const { clock } = life;
    const store = boundStore(life, this.store);
    this.#life = life;
    this.#stop = new AbortController();
    await createSystemNamespaces({ store, clock, random: random.fork("namespaces") });
    const deps = { store, clock, random, log: silentLogger, metrics: noMetrics };
    const { behaves = (handler) => handler, controllers = true } = this.#options;
    this.#wire = createMemoryTransport(behaves(createHandler(deps)));
    if (controllers) void createEngineControllers(deps).run(this.#stop.signal);
  }

  kill(): void {
    this.#life?.kill();
    this.#life = undefined;
    // Breaks every connection.
    void this.#wire?.close();
    this.#wire = undefined;
    this.#stop.abort(new Error("killed"));
  }

  /** To whoever is connected to it. A caller that is `gone` takes its watches along. */
  readonly transport: Transport = {
    request: async (call) => {
      const answer = this.#connected(call).request(call);
      const hear = (response: TransportResponse) => {
        for (const witness of this.#witnesses) witness.answered(call, response);
      };
      // Beside the answer, so that it is on its way no longer than without witnesses.
      answer.then(hear, () => undefined);
      return answer;
    },
    stream: async (call) => this.#connected(call).stream(call),
    close: async () => undefined,
  };

  #connected({ path }: TransportRequest): Transport {
    if (this.#wire === undefined) throw new KubeError("Unreachable", `${path}: connection refused`);
    return this.#wire;
  }
}

/** Reads of a dead server harm nobody; a write of it must not be begun. */
function boundStore(life: Life, store: ObjectStore): ObjectStore {
  return life.bind(store);
}
