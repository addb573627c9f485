import { createPromMetrics, type PromMetrics } from "../base/prom-metrics.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Client } from "../kube/client/client.ts";
import type { TransportRequest } from "../kube/transport/transport.ts";
import type { SimCore } from "./core.ts";
import type { Network } from "./link.ts";
import { ScriptedTransport } from "./scripted-transport.ts";
import type { LifeContext, Supervisor } from "./supervisor.ts";

/** What a program under test is put together from. */
export interface ProgramContext extends LifeContext {
  /** Through the scripted network, with no limits of its own. */
  readonly client: Client;
}

export interface ProgramOptions {
  readonly name: string;
  readonly network: Network;
  /** How far the clock of its machine is off. */
  readonly wallOffsetMs: number;
  /** Plurals whose watches deliver nothing for now. */
  readonly held: ReadonlySet<string>;
  /** A request as a line to read in a test; undefined for those that no test asks for. */
  readonly describe: (request: TransportRequest) => string | undefined;
}

/**
 * One life of a program under test: a process of the simulator whose clock is right, whose requests a test reads as lines, and of
 * which it says what goes wrong. It begins at once, and has no other life.
 */
export class Program {
  readonly metrics: PromMetrics = createPromMetrics();
  /** What it ended with although nobody had asked it to. */
  failure: unknown;
  readonly #process: Supervisor;
  readonly #ended: Promise<void>;
  #transport: ScriptedTransport | undefined;

  constructor(
    core: SimCore,
    { name, held, describe, ...options }: ProgramOptions,
    work: (context: ProgramContext, signal: AbortSignal) => Promise<unknown>,
  ) {
    let isAsked = () => false;
    let end: () => void = () => undefined;
    this.#ended = new Promise((resolve) => (end = resolve));
    this.#process = core.add(
      name,
      async (context, signal) => {
        isAsked = () => signal.aborted;
        const { transport, clock, random } = context;
        const client = createClient({ transport, clock, random: random.fork("program") });
        await work({ ...context, client }, signal);
      },
      {
        ...{ rate: 1, restarts: false, metrics: this.metrics, ...options },
        through: (inner, life) => {
          const { clock } = life;
          const isAlive = () => life.isAlive;
          return (this.#transport = new ScriptedTransport({ inner, clock, held, isAlive }, describe));
        },
        onEnd: (error) => {
          if (!isAsked()) this.failure ??= error;
          end();
        },
      },
    );
    this.#process.start();
  }

  /** Its way to the server. */
  get transport(): ScriptedTransport {
    if (this.#transport === undefined) throw new Error(`${this.#process.name} was never started`);
    return this.#transport;
  }

  /** Asks it to end, and answers once it has; simulated time must go on meanwhile. */
  stop(): Promise<void> {
    this.#process.stop();
    return this.#ended;
  }

  /** Ends it between two lines: what is on the wire may still be carried out, no answer arrives. */
  kill(): void {
    this.#process.kill();
  }

  jumpWall(byMs: number): void {
    this.#process.jumpWall(byMs);
  }

  /** The value of a metric, summed over what has all of these labels (`key="value"`); undefined if there is none. */
  async metric(name: string, labels: readonly string[]): Promise<number | undefined> {
    const lines = (await this.metrics.render()).split("\n");
    const values = lines
      .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .filter((line) => labels.every((label) => line.includes(label)))
      .map((line) => line.slice(line.lastIndexOf(" ") + 1))
      .map((text) => (text === "+Inf" ? Infinity : Number(text)));
    return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
  }
}
