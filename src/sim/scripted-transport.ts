import { abortReason, type Clock } from "../base/clock.ts";
import { KubeError } from "../kube/errors.ts";
import type { Transport, TransportRequest, TransportResponse } from "../kube/transport/transport.ts";

/** What goes wrong with a request, as a scenario says it. */
export type Mishap =
  /** The server answers this and does nothing. */
  | { readonly kind: "status"; readonly status: number }
  /** Carried out, but the answer never arrives. */
  | { readonly kind: "answer-lost" }
  /** Carried out at once, and answered only after so long. */
  | { readonly kind: "answer-late"; readonly ms: number }
  /** The connection breaks at once; the server carries it out so much later. */
  | { readonly kind: "late"; readonly ms: number }
  /** Carried out only after so long. */
  | { readonly kind: "delay"; readonly ms: number }
  /** Neither carried out nor answered. */
  | { readonly kind: "hang" };

export interface ScriptedRequest {
  readonly line: string;
  readonly atMs: number;
}

export interface ScriptedTransportDeps {
  readonly inner: Transport;
  readonly clock: Clock;
  /** Plurals whose watches deliver nothing for now: `nodes`. Looked at all the time. */
  readonly held: ReadonlySet<string>;
  /** Of the process behind it: what it was about to send when it died is not sent. */
  readonly isAlive?: () => boolean;
}

/** How soon a watch notices that it is no longer held. */
const HELD_LOOK_MS = 10;

/**
 * The way of one process to the server, where a test reads every request as a line and says which of them go wrong.
 * Requests are written down when they leave, with what happens to them in brackets.
 */
export class ScriptedTransport implements Transport {
  readonly requests: ScriptedRequest[] = [];
  readonly #inner: Transport;
  readonly #clock: Clock;
  readonly #held: ReadonlySet<string>;
  readonly #isAlive: () => boolean;
  readonly #describe: (request: TransportRequest) => string | undefined;
  readonly #script: { matcher: string; mishap: Mishap; left: number }[] = [];
  /** By the plural of what they watch; aborted while it is cut. */
  readonly #kinds = new Map<string, AbortController>();
  readonly #reads: ((call: TransportRequest) => TransportResponse | undefined)[] = [];
  #line = new AbortController();
  #isCut = false;

  constructor(
    { inner, clock, held, isAlive = () => true }: ScriptedTransportDeps,
    describe: (request: TransportRequest) => string | undefined,
  ) {
    this.#inner = inner;
    this.#clock = clock;
    this.#held = held;
    this.#isAlive = isAlive;
    this.#describe = describe;
  }

  /**
   * The next `times` requests whose line begins with these words. Answers how to end it early, for a mishap
   * that lasts until somebody repairs it.
   */
  spoil(matcher: string, mishap: Mishap, times = Infinity): () => void {
    const entry = { matcher, mishap, left: times };
    this.#script.push(entry);
    return () => (entry.left = 0);
  }

  /** Nothing gets through, and every watch breaks. */
  cut(): void {
    this.#isCut = true;
    this.#line.abort(new KubeError("ConnectionLost", "the network is cut"));
  }

  mend(): void {
    this.#isCut = false;
    this.#line = new AbortController();
  }

  /** Lists and watches of one kind (`pods`) break and reach nobody, until the answered function is called. */
  cutKind(plural: string): () => void {
    this.#kind(plural).abort(new KubeError("ConnectionLost", `${plural}: the connection is cut`));
    return () => void this.#kinds.delete(plural);
  }

  /** Lists and watches that this answers never reach the server. Answers how to end it. */
  answerReads(answer: (call: TransportRequest) => TransportResponse | undefined): () => void {
    this.#reads.push(answer);
    return () => void this.#reads.splice(this.#reads.indexOf(answer), 1);
  }

  async request(call: TransportRequest): Promise<TransportResponse> {
    this.#leave(call);
    const read = this.#read(call);
    if (read !== undefined) return read;
    const described = this.#describe(call);
    const mishap = described === undefined ? undefined : this.#take(described);
    if (described !== undefined)
      this.requests.push({ line: described + bracket(mishap), atMs: this.#clock.now() });
    if (!this.#isAlive()) return never();
    if (mishap?.kind === "status") return failure(mishap.status);
    if (mishap?.kind === "hang") return never(call.signal);
    if (mishap?.kind === "late") {
      void this.#deliverLate(call, mishap.ms);
      throw new KubeError("ConnectionLost", `${call.path}: the connection broke`);
    }
    if (mishap?.kind === "delay") await this.#clock.sleep(mishap.ms, call.signal);
    const answer = await this.#inner.request(call);
    if (mishap?.kind === "answer-lost") throw new KubeError("ConnectionLost", `${call.path}: answer lost`);
    if (mishap?.kind === "answer-late") await this.#clock.sleep(mishap.ms, call.signal);
    this.#leave(call);
    return answer;
  }

  async #deliverLate({ signal: _, ...call }: TransportRequest, ms: number): Promise<void> {
    await this.#clock.sleep(ms);
    await this.#inner.request(call);
  }

  async stream(call: TransportRequest) {
    this.#leave(call);
    const read = this.#read(call);
    if (read !== undefined) return { ...read, body: bytesOf(read.body) };
    const plural = pluralOf(call);
    const ends = [this.#line.signal, this.#kind(plural).signal];
    const signal = AbortSignal.any(call.signal ? [call.signal, ...ends] : ends);
    const opened = await this.#inner.stream({ ...call, signal });
    return { ...opened, body: this.#withholding(plural, opened.body, signal) };
  }

  async *#withholding(
    plural: string,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      while (this.#held.has(plural)) await this.#clock.sleep(HELD_LOOK_MS, signal);
      yield chunk;
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #kind(plural: string): AbortController {
    const kind = this.#kinds.get(plural) ?? new AbortController();
    this.#kinds.set(plural, kind);
    return kind;
  }

  #read(call: TransportRequest): TransportResponse | undefined {
    for (const answer of call.method === "GET" ? this.#reads : []) {
      const answered = answer(call);
      if (answered !== undefined) return answered;
    }
    return undefined;
  }

  #leave(call: TransportRequest): void {
    const isCut = this.#isCut || (this.#kinds.get(pluralOf(call))?.signal.aborted ?? false);
    if (isCut) throw new KubeError("Unreachable", `${call.path}: the network is cut`);
  }

  #take(line: string): Mishap | undefined {
    const entry = this.#script.find(
      ({ matcher, left }) => left > 0 && (line === matcher || line.startsWith(`${matcher} `)),
    );
    if (entry === undefined) return undefined;
    entry.left--;
    return entry.mishap;
  }
}

/** Of a list or a watch of a whole kind; anything else is none. */
function pluralOf({ path }: TransportRequest): string {
  return /\/([a-z]+)\?/.exec(path)?.[1] ?? "";
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

function bracket(mishap: Mishap | undefined): string {
  switch (mishap?.kind) {
    case undefined:
    case "delay":
    case "answer-late":
      return "";
    case "status":
      return ` (${mishap.status})`;
    case "answer-lost":
      return " (answer lost)";
    case "late":
      return " (late)";
    case "hang":
      return " (hangs)";
  }
}

const REASONS: Readonly<Record<number, string>> = {
  403: "Forbidden",
  404: "NotFound",
  409: "AlreadyExists",
  422: "Invalid",
  500: "InternalError",
};

function failure(status: number): TransportResponse {
  const reason = REASONS[status] ?? "InternalError";
  const body = { kind: "Status", status: "Failure", reason, code: status, message: `made up: ${reason}` };
  return { status, headers: {}, body: JSON.stringify(body) };
}

function never(signal?: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted) reject(abortReason(signal));
    else signal?.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
  });
}
