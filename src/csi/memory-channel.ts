import { setMaxListeners } from "node:events";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { withEither } from "../base/signals.ts";
import { abortReason, withDeadline } from "../base/clock.ts";
import { answerStream, answerUnary, type DispatchDeps } from "./dispatch.ts";
import { CsiError } from "./errors.ts";
import { pathOf, type CallOptions, type Channel, type ServedMethod } from "./methods.ts";

/** A channel to handlers in this process, and the means to break it. */
export interface MemoryChannel extends Channel {
  /** From now on nobody answers: calls fail with UNAVAILABLE, running ones too. */
  disconnect(): void;
  /** Somebody answers again, possibly somebody else. */
  connect(served?: readonly ServedMethod[]): void;
}

/**
 * The network, in memory: requests and answers are encoded and decoded as on a socket, so that presence, defaults and
 * unknown fields behave the same, and nobody holds the other side's objects. Time is the given clock's.
 */
export function createMemoryChannel(deps: DispatchDeps, served: readonly ServedMethod[]): MemoryChannel {
  const lost = new Set<() => void>();
  const waiting = new Set<() => void>();
  let methods: Map<string, ServedMethod> | undefined = byPath(served);
  let connection = createConnection();
  let closed = false;

  function find(path: string): ServedMethod {
    if (methods === undefined) throw new CsiError("UNAVAILABLE", `${path}: nobody answers`);
    const found = methods.get(path);
    if (found === undefined) throw new CsiError("UNIMPLEMENTED", `${path} is not served here`);
    return found;
  }

  /** Runs `work` until it ends, the deadline passes, the caller gives up or the connection is cut. */
  async function within<T>(
    path: string,
    { timeoutMs, signal }: CallOptions,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (signal?.aborted) throw new CsiError("CANCELLED", `${path}: cancelled before it was sent`);
    const onDeadline = () =>
      new CsiError("DEADLINE_EXCEEDED", `${path}: no answer within ${timeoutMs} ms`, { unanswered: true });
    try {
      return await withEither([signal, connection.signal], (outer) =>
        withDeadline(deps.clock, { ms: timeoutMs, signal: outer, onDeadline }, (inner) =>
          Promise.race([work(inner), rejectOnAbort(inner)]),
        ),
      );
    } catch (error) {
      if (error instanceof CsiError) throw error;
      throw new CsiError("CANCELLED", `${path}: cancelled by the caller`, { cause: error, unanswered: true });
    }
  }

  return {
    async unary(method, request, options) {
      const path = pathOf(method);
      const bytes = toBinary(method.input, create(method.input, request));
      const answer = await within(path, options, async (signal) =>
        answerUnary(deps, find(path), bytes, { path, signal }),
      );
      return fromBinary(method.output, answer);
    },
    async *stream(method, request, options) {
      const path = pathOf(method);
      const bytes = toBinary(method.input, create(method.input, request));
      // Whoever stops reading, for whatever reason, lets the handler know.
      const gone = new AbortController();
      let ended = false;
      const chunks = answerStream(deps, find(path), bytes, { path, signal: gone.signal });
      const endsAtMs = deps.clock.now() + options.timeoutMs;
      try {
        for (;;) {
          const left = { ...options, timeoutMs: endsAtMs - deps.clock.now() };
          const next = await within(path, left, () => chunks.next());
          if (next.done) {
            ended = true;
            return;
          }
          yield fromBinary(method.output, next.value);
        }
      } finally {
        if (!ended) leave(gone, chunks);
      }
    },
    async ready(options) {
      if (methods !== undefined) return;
      await within("connect", options, () => new Promise<void>((resolve) => waiting.add(resolve)));
    },
    onLost(listener) {
      lost.add(listener);
      return () => lost.delete(listener);
    },
    disconnect() {
      if (methods === undefined) return;
      methods = undefined;
      connection.abort(new CsiError("UNAVAILABLE", "the connection was lost", { unanswered: true }));
      connection = createConnection();
      for (const listener of [...lost]) listener();
    },
    connect(next = served) {
      if (closed) return;
      methods = byPath(next);
      for (const resolve of waiting) resolve();
      waiting.clear();
    },
    close() {
      if (closed) return;
      closed = true;
      methods = undefined;
      lost.clear();
      connection.abort(new CsiError("CANCELLED", "the channel was closed", { unanswered: true }));
    },
  };
}

/**
 * Tells a handler that nobody reads on. One that waits for its reader is ended here, so that its `finally` blocks run;
 * one that is at work hears the signal and is ended at its next message. The reader does not wait for either, as it does
 * not on a socket.
 */
function leave(gone: AbortController, chunks: AsyncGenerator<Uint8Array, void>): void {
  gone.abort();
  // What it throws on its way out has nobody left to be told to.
  chunks.return().catch(() => undefined);
}

/** Every running call listens to it, and there is no bound on them worth a warning. */
function createConnection(): AbortController {
  const connection = new AbortController();
  setMaxListeners(0, connection.signal);
  return connection;
}

function byPath(served: readonly ServedMethod[]): Map<string, ServedMethod> {
  return new Map(served.map((method) => [method.path, method]));
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(abortReason(signal));
    else signal.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
  });
}
