import type { MemoryHandler, MemoryResponse } from "../../src/kube/transport/memory-transport.ts";
import { createScript, type FaultScript, type Reply } from "./faults.ts";

/** The faults of `faults.ts` without a wire, for the memory transport. A connection is one exchange here. */
export function createFaultyHandler(): FaultScript & { readonly handler: MemoryHandler } {
  const script = createScript();
  return {
    on: (path, ...behaviours) => script.on(path, ...behaviours),
    arrived: (path, count) => script.arrived(path, count),
    seen: script.seen,
    handler: ({ method, path, headers, body, signal }) =>
      new Promise((resolve, reject) => {
        const request = { method, path, headers, body: String(body) };
        void script.take(request)(createReply(signal, resolve, reject), request);
      }),
  };
}

function createReply(
  signal: AbortSignal,
  resolve: (response: MemoryResponse) => void,
  reject: (error: Error) => void,
): Reply {
  const pipe = new Pipe();
  const closed = new Promise<void>((settle) => {
    pipe.onDone = settle;
    signal.addEventListener("abort", () => pipe.finish(), { once: true });
  });
  const cut = () => {
    reject(new Error("cut by script"));
    pipe.finish(new Error("cut by script"));
  };
  return {
    closed,
    head: (status, headers = {}) => resolve({ status, headers: joined(headers), body: pipe }),
    write: (chunk) => pipe.write(chunk),
    end: () => pipe.finish(),
    cut,
    reset: cut,
    goAway: () => {},
  };
}

/** As a socket's buffer: past it a writer waits for its reader. */
const BUFFERED_BYTES_MAX = 64 * 1024;

/** The body between script and transport. */
class Pipe implements AsyncIterable<string | Uint8Array> {
  readonly #chunks: { chunk: string | Uint8Array; taken: () => void }[] = [];
  #bytes = 0;
  #done = false;
  #error: Error | undefined;
  #wake: () => void = () => {};
  onDone: () => void = () => {};

  write(chunk: string | Uint8Array): Promise<void> {
    if (this.#done) return Promise.resolve();
    return new Promise((taken) => {
      this.#bytes += chunk.length;
      this.#chunks.push({ chunk, taken });
      if (this.#bytes <= BUFFERED_BYTES_MAX) taken();
      this.#wake();
    });
  }

  finish(error?: Error): void {
    if (this.#done) return;
    this.#done = true;
    this.#error = error;
    this.#wake();
    this.onDone();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string | Uint8Array> {
    for (;;) {
      const next = this.#chunks.shift();
      if (next !== undefined) {
        this.#bytes -= next.chunk.length;
        next.taken();
        yield next.chunk;
      } else if (this.#error !== undefined) {
        throw this.#error;
      } else if (this.#done) {
        return;
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }
}

function joined(headers: Readonly<Record<string, string | string[]>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase(),
      typeof value === "string" ? value : value.join(", "),
    ]),
  );
}
