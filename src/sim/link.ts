import { chance, type Random } from "../base/random.ts";
import { abortReason, type Clock } from "../base/clock.ts";
import { KubeError } from "../kube/errors.ts";
import type { Transport, TransportRequest } from "../kube/transport/transport.ts";
import { createFaultyTransport, NO_FAULTS, type NetworkFaults } from "./faulty-transport.ts";
import type { Life } from "./life.ts";

/**
 * - `up`: with the faults of the moment;
 * - `cut`: packets are dropped; what is under way waits, new requests get no answer, watches are silent;
 * - `half-open`: requests arrive and are carried out, no answer and no event comes back;
 * - `lagging`: requests are answered, but the events of watches wait.
 */
export type LinkState = "up" | "cut" | "half-open" | "lagging";

/** `perfect` takes no time and loses nothing; a function is asked for the faults of the moment, instead of `faults`. */
export type Network = "perfect" | (() => NetworkFaults);

/** Of those that stood when a partition heals; the others had been given up by one end. */
const RESUMED = 0.5;

/** The way of one process to the API server: a network that a fault changes while requests and watches are under way. */
export class Link {
  readonly transport: Transport;
  faults: NetworkFaults = NO_FAULTS;
  /** As its process knows them; watches are none. */
  requestsUnderWay = 0;
  #state: LinkState = "up";
  readonly #random: Random;
  readonly #waiting = new Set<() => void>();
  readonly #open = new Set<AbortController>();

  constructor(
    life: Life,
    server: Transport,
    {
      wireClock,
      random,
      network = () => this.faults,
    }: { wireClock: Clock; random: Random; network?: Network | undefined },
  ) {
    this.#random = random;
    const gated: Transport = {
      request: (call) => this.#request(server, call),
      stream: (call) => this.#stream(server, call),
      close: async () => undefined,
    };
    const faulty =
      network === "perfect"
        ? gated
        : createFaultyTransport(gated, { clock: life.clock, wireClock, random }, network);
    this.transport = this.#counted(heardBy(life, faulty));
    // The kernel of its machine closes what a killed process had open.
    life.onKill(() => this.sever());
  }

  get state(): LinkState {
    return this.#state;
  }

  set(state: LinkState): void {
    if (this.#state === state) return;
    this.#state = state;
    if (state !== "up") return;
    for (const connection of [...this.#open]) if (!chance(this.#random, RESUMED)) this.#break(connection);
    for (const wake of [...this.#waiting]) wake();
    this.#waiting.clear();
  }

  /** Every connection breaks. */
  sever(): void {
    for (const connection of [...this.#open]) this.#break(connection);
  }

  #counted(transport: Transport): Transport {
    const answered = () => {
      this.requestsUnderWay--;
    };
    return {
      ...transport,
      request: (call) => {
        this.requestsUnderWay++;
        const answer = transport.request(call);
        answer.then(answered, answered);
        return answer;
      },
    };
  }

  async #request(server: Transport, call: TransportRequest) {
    if (this.#state === "cut") await this.#passable(call.signal);
    const answer = await server.request(call);
    if (this.#state === "cut" || this.#state === "half-open") await this.#passable(call.signal);
    return answer;
  }

  async #stream(server: Transport, call: TransportRequest) {
    const connection = new AbortController();
    const leave = () => {
      this.#open.delete(connection);
      connection.abort(call.signal === undefined ? undefined : abortReason(call.signal));
    };
    if (call.signal?.aborted === true) leave();
    call.signal?.addEventListener("abort", leave, { once: true });
    if (this.#state === "cut") await this.#passable(call.signal);
    this.#open.add(connection);
    const opened = await server.stream({ ...call, signal: connection.signal });
    const passable = () => this.#passable(connection.signal);
    const isUp = () => this.#state === "up";
    async function* events(): AsyncGenerator<Uint8Array> {
      try {
        for await (const chunk of opened.body) {
          if (!isUp()) await passable();
          yield chunk;
        }
      } finally {
        leave();
      }
    }
    return { ...opened, body: events() };
  }

  #break(connection: AbortController): void {
    this.#open.delete(connection);
    connection.abort(new KubeError("ConnectionLost", "the connection broke"));
  }

  #passable(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.delete(wake);
        if (signal !== undefined) reject(abortReason(signal));
      };
      const wake = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#waiting.add(wake);
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
    });
  }
}

/** What arrives for a process that is dead, or frozen, is not noticed by it: no line of its code runs. */
function heardBy(life: Life, wire: Transport): Transport {
  return {
    request: (call) => life.deliver(wire.request(call)),
    async stream(call) {
      const opened = await life.deliver(wire.stream(call));
      const source = opened.body[Symbol.asyncIterator]();
      const body: AsyncIterable<Uint8Array> = {
        [Symbol.asyncIterator]: () => ({
          next: () => life.deliver(source.next()),
          return: () => life.deliver(source.return?.() ?? Promise.resolve({ done: true, value: undefined })),
        }),
      };
      return { ...opened, body };
    },
    close: () => wire.close(),
  };
}
