import { assert } from "../../base/assert.ts";
import { KubeError } from "../errors.ts";

/** What HTTP/1.1 and HTTP/2 have in common below the transport: one exchange, headers first, body as it comes. */
export interface WireRequest {
  readonly method: string;
  /** With the prefix of the server's URL and the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: WireBody;
}

/** How a body holds back or gives up its source. Each is called from the reader's side only. */
export interface Flow {
  pause(): void;
  resume(): void;
  /** The reader left: close the stream and tell the server. */
  cancel(): void;
}

/**
 * Bytes kept for a reader that is busy. Past it the source is paused and TCP or HTTP/2 flow control slows
 * the server down; a watch event is 1 to 20 KiB, so the reader still finds several waiting.
 */
const BUFFERED_BYTES_MAX = 64 * 1024;

/**
 * A body between the socket that pushes it and the one reader that pulls it, either as chunks or at once as
 * text. What arrived before a failure is delivered before it; an abort delivers nothing more.
 */
export class WireBody implements AsyncIterable<Uint8Array> {
  readonly #flow: Flow;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #bytesMax: number | undefined = BUFFERED_BYTES_MAX;
  #paused = false;
  #state: "open" | "ended" | "failed" = "open";
  #error: Error | undefined;
  #change: { promise: Promise<void>; announce: () => void } | undefined;
  #taken = false;

  constructor(flow: Flow) {
    this.#flow = flow;
  }

  push(chunk: Uint8Array): void {
    if (this.#state !== "open") return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
    if (this.#bytesMax !== undefined && this.#bytes >= this.#bytesMax && !this.#paused) {
      this.#paused = true;
      this.#flow.pause();
    }
    this.#notify();
  }

  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ended";
    this.#notify();
  }

  /** Neither complete nor failed yet. */
  get isOpen(): boolean {
    return this.#state === "open";
  }

  fail(error: Error): void {
    if (this.#state !== "open") return;
    this.#state = "failed";
    this.#error = error;
    this.#notify();
  }

  /** Fails with the reader's own reason; what it had not taken yet is dropped. */
  abort(reason: Error): void {
    this.#drop();
    this.fail(reason);
  }

  /** Leaves the body unread and closes its stream. */
  cancel(): void {
    const wasOpen = this.#state === "open";
    this.#state = "ended";
    this.#drop();
    this.#notify();
    if (wasOpen) this.#flow.cancel();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    this.#take();
    return {
      next: () => this.#next(),
      return: () => {
        this.cancel();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  /** The whole body as text. Longer than `bytesMax` is a `BadResponse` that says what to do. */
  async text(what: string, bytesMax: number): Promise<string> {
    this.#take();
    this.#bytesMax = undefined;
    while (this.#state === "open") {
      if (this.#bytes > bytesMax) {
        this.cancel();
        throw tooLarge(what, bytesMax);
      }
      await this.#changed();
    }
    if (this.#error !== undefined) throw this.#error;
    if (this.#bytes > bytesMax) throw tooLarge(what, bytesMax);
    const [first] = this.#chunks;
    if (first === undefined) return "";
    const whole = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#bytes);
    this.#drop();
    return Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).toString("utf8");
  }

  async #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    while (this.#chunks.length === 0 && this.#state === "open") await this.#changed();
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#bytes -= chunk.byteLength;
      this.#resumeIfEmpty();
      return { done: false, value: chunk };
    }
    const error = this.#error;
    this.#error = undefined;
    if (error !== undefined) throw error;
    return { done: true, value: undefined };
  }

  #resumeIfEmpty(): void {
    if (!this.#paused || this.#chunks.length > 0) return;
    this.#paused = false;
    this.#flow.resume();
  }

  #drop(): void {
    this.#chunks.length = 0;
    this.#bytes = 0;
  }

  #take(): void {
    assert(!this.#taken, "a response body was read twice: its bytes are gone after the first time");
    this.#taken = true;
  }

  #changed(): Promise<void> {
    if (this.#change === undefined) {
      let announce = () => {};
      const promise = new Promise<void>((resolve) => (announce = resolve));
      this.#change = { promise, announce };
    }
    return this.#change.promise;
  }

  #notify(): void {
    this.#change?.announce();
    this.#change = undefined;
  }
}

function tooLarge(what: string, bytesMax: number): KubeError {
  return new KubeError(
    "BadResponse",
    `${what}: the answer is longer than ${bytesMax} bytes; ask for less, with \`limit\` or a selector`,
  );
}

/** As undici and node:http2 hand them over. */
export type ReceivedHeaders = Readonly<Record<string, string | string[] | number | undefined>>;

/** One line a name, as the contract says; the pseudo-headers of HTTP/2 are not headers. */
export function joinHeaders(headers: ReceivedHeaders): Record<string, string> {
  const joined: Record<string, string> = {};
  // Keys instead of entries: no pair is made of each of the ten headers of each answer.
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value === undefined || name.startsWith(":")) continue;
    joined[name] =
      typeof value === "string" ? value : Array.isArray(value) ? value.join(", ") : String(value);
  }
  return joined;
}

/** Both libraries want arrays that they may change. */
export function copyHeaders(headers: WireRequest["headers"]): Record<string, string | string[]> {
  const copy: Record<string, string | string[]> = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name] ?? "";
    copy[name] = typeof value === "string" ? value : [...value];
  }
  return copy;
}
