import type { TransportRequest } from "../kube/transport/transport.ts";
import { SimCore, type CoreOptions } from "./core.ts";
import type { Network } from "./link.ts";
import { Program, type ProgramContext } from "./program.ts";
import type { ScriptedTransport } from "./scripted-transport.ts";
import { HANDLER_ALONE, type SimServerOptions } from "./server.ts";

export interface HarnessOptions extends CoreOptions {
  readonly seed?: number | undefined;
  /** What goes wrong between a program and the server by chance; asked at every step. Perfect where left out. */
  readonly network?: Network | undefined;
  /** What `settle` waits for: less than the first back-off, so that settling never includes a retry. */
  readonly settleMs: number;
}

/** The core with its API server running and nothing else yet, for tests that need no more than `add`. */
export async function startCore(seed: number | string = 1, server: SimServerOptions = {}): Promise<SimCore> {
  const core = new SimCore(seed, { server: { ...HANDLER_ALONE, ...server } });
  await core.server.start();
  return core;
}

/** The core of the simulator with one program on it, which a test starts, disturbs, kills and starts again. */
export abstract class Harness extends SimCore {
  /** Plurals (`nodes`) of which a program is told nothing new for now: a cache that lags behind. */
  readonly held = new Set<string>();
  /** All that were started, oldest first. */
  readonly programs: Program[] = [];
  readonly #network: Network;
  readonly #settleMs: number;
  #wallOffsetMs = 0;

  constructor({ seed = 1, network = "perfect", settleMs, server = {}, ...core }: HarnessOptions) {
    super(seed, { ...core, server: { ...HANDLER_ALONE, ...server } });
    this.#network = network;
    this.#settleMs = settleMs;
  }

  /** The one that was started last. */
  get program(): Program {
    const last = this.programs.at(-1);
    if (last === undefined) throw new Error("no program was started in this world");
    return last;
  }

  /** Its way to the server. */
  get transport(): ScriptedTransport {
    return this.program.transport;
  }

  kill(): void {
    this.programs.at(-1)?.kill();
  }

  /** Lets everything happen that needs no retry. */
  settle(): Promise<void> {
    return this.advance(this.#settleMs);
  }

  async advance(ms: number): Promise<void> {
    await this.scheduler.runFor(ms);
    for (const { failure } of this.programs) if (failure !== undefined) throw failure as Error;
  }

  /** Somebody sets the clock of the machine on which everything runs, also what is started later. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
    this.clock.jumpWall(byMs);
    for (const program of this.programs) program.jumpWall(byMs);
  }

  /** Starts another life of it, or another replica. */
  protected launch(
    name: string,
    describe: (request: TransportRequest) => string | undefined,
    work: (context: ProgramContext, signal: AbortSignal) => Promise<unknown>,
  ): Program {
    const named = `${name}-${this.programs.length}`;
    const { held } = this;
    const machine = { network: this.#network, wallOffsetMs: this.#wallOffsetMs };
    const program = new Program(this, { name: named, held, describe, ...machine }, work);
    this.programs.push(program);
    return program;
  }
}
