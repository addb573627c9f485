import { abortReason } from "../../base/clock.ts";
import { anonymous, type Credential, type Credentials } from "./access.ts";
import { authenticated } from "./authenticate.ts";
import { KubeError } from "../errors.ts";
import type { HandlerRequest, HandlerResponse, HandlerUser } from "../handler.ts";
import { describeRequest } from "./http-errors.ts";
import type { Transport, TransportRequest } from "./transport.ts";

/** Any `Handler`; one that simulates a wire may also send bytes, and so split a character in two. */
export type MemoryHandler = (request: HandlerRequest) => Promise<MemoryResponse>;

export interface MemoryResponse extends Omit<HandlerResponse, "body"> {
  readonly body: string | AsyncIterable<string | Uint8Array>;
}

export interface MemoryTransportOptions {
  readonly credentials?: Credentials;
  /** Who the handler is told is calling, as a client certificate would. */
  readonly user?: HandlerUser;
}

/**
 * The transport without a wire: a request is a call of the handler. It waits for nothing but promises, so
 * a simulation that uses it repeats exactly. A handler that throws is a server that hung up.
 */
export function createMemoryTransport(
  handler: MemoryHandler,
  { credentials = anonymous, user }: MemoryTransportOptions = {},
): Transport {
  const open = new Set<Call>();
  let isClosed = false;

  const exchange = (request: TransportRequest): Promise<Answer> =>
    authenticated(credentials, request.signal, {
      send: (credential) => call(request, credential),
      discard: async ({ call: answered }) => answered.leave(),
    });

  async function call(request: TransportRequest, { authorization }: Credential): Promise<Answer> {
    const what = describeRequest(request);
    if (isClosed) throw new KubeError("Unreachable", `${what}: this transport was closed`);
    const line = new Call(what, request.signal, open);
    const { method, path, headers, body = "" } = request;
    const response = await line.wait(() =>
      handler({
        method,
        path,
        headers: { ...headers, ...(authorization === undefined ? {} : { authorization }) },
        body,
        signal: line.signal,
        ...(user === undefined ? {} : { user }),
      }),
    );
    return { ...response, call: line };
  }

  return {
    async request(request) {
      const { status, headers, body, call: line } = await exchange(request);
      if (typeof body !== "string") return { status, headers, body: await textOf(line.chunksOf(body)) };
      line.finish();
      return { status, headers, body };
    },
    async stream(request) {
      const { status, headers, body, call: line } = await exchange(request);
      return { status, headers, body: line.chunksOf(typeof body === "string" ? once(body) : body) };
    },
    async close() {
      isClosed = true;
      for (const line of open) line.close();
    },
  };
}

type Answer = MemoryResponse & { readonly call: Call };

/** One exchange: what ends it early, and what the handler is told then. */
class Call {
  readonly #what: string;
  readonly #caller: AbortSignal | undefined;
  /** All exchanges under way. */
  readonly #open: Set<Call>;
  readonly #controller = new AbortController();
  /** Of who waits for the server side: one at a time, as one reader asks for one chunk. */
  #giveUp: ((reason: Error) => void) | undefined;

  constructor(what: string, caller: AbortSignal | undefined, open: Set<Call>) {
    this.#what = what;
    this.#caller = caller;
    this.#open = open;
    open.add(this);
    if (caller?.aborted === true) this.#onAbort();
    else caller?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Aborts when the client went away. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What the server side gives, unless this exchange ends before. */
  wait<T>(ask: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject;
      if (this.signal.aborted) {
        reject(abortReason(this.signal));
        return;
      }
      ask().then(resolve, (error: unknown) => {
        this.finish();
        reject(error instanceof KubeError ? error : this.#lost("the server hung up", error));
      });
    });
  }

  chunksOf(body: AsyncIterable<string | Uint8Array>): AsyncIterable<Uint8Array> {
    const source = body[Symbol.asyncIterator]();
    this.signal.addEventListener("abort", () => void giveUp(source), { once: true });
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          const next = await this.wait(() => source.next());
          if (next.done !== true) return { done: false, value: toBytes(next.value) };
          this.finish();
          return { done: true, value: undefined };
        },
        return: async () => {
          this.leave();
          return { done: true, value: undefined };
        },
      }),
    };
  }

  /** The reader has what it wants: the handler hears that nobody listens any more. */
  leave(): void {
    this.#end(new Error("the client hung up"));
  }

  /** The connection goes from under it. */
  close(): void {
    this.#end(this.#lost("this transport was closed"));
  }

  /** The exchange is complete: nothing that happens later concerns it. */
  finish(): void {
    this.#caller?.removeEventListener("abort", this.#onAbort);
    this.#open.delete(this);
  }

  readonly #onAbort = (): void => {
    if (this.#caller !== undefined) this.#end(abortReason(this.#caller));
  };

  #end(reason: Error): void {
    this.finish();
    this.#controller.abort(reason);
    this.#giveUp?.(reason);
  }

  #lost(why: string, cause?: unknown): KubeError {
    return new KubeError("ConnectionLost", `${this.#what}: ${why}; it may or may not have been carried out`, {
      cause,
    });
  }
}

/** Not awaited: a source that waits for something itself would answer only then. */
async function giveUp(source: AsyncIterator<unknown>): Promise<void> {
  try {
    await source.return?.();
  } catch {
    // Its reader has gone already, and with it whoever could be told.
  }
}

async function* once(text: string): AsyncGenerator<string> {
  if (text !== "") yield text;
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all).toString("utf8");
}

function toBytes(chunk: string | Uint8Array): Uint8Array {
  return typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}
