import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { Pool, type Dispatcher } from "undici";
import { abortReason } from "../../base/clock.ts";
import { toKubeError } from "./http-errors.ts";
import {
  copyHeaders,
  joinHeaders,
  WireBody,
  type ReceivedHeaders,
  type WireRequest,
  type WireResponse,
} from "./http-wire.ts";

/**
 * HTTP/1.1 through one undici pool: a connection an exchange, kept for the next one.
 *
 * undici says when it takes a request to a socket (`onRequestStart`). A failure before that is certain not
 * to have reached the server; one after it may have, also on a kept connection that the server was just
 * closing. undici itself never sends a request twice here, because pipelining is off.
 */
export interface Http1 {
  send(request: WireRequest): Promise<WireResponse>;
  /** Takes nothing new; resolves when what was under way has ended. */
  retire(): Promise<void>;
  close(reason: Error): Promise<void>;
}

/**
 * How long an unused connection is kept. Go servers keep theirs for 90 s and Node's say 5 s in a
 * `Keep-Alive` header, which undici heeds; closing first avoids writing into a connection about to end.
 */
const IDLE_MS = 30_000;

export function createHttp1(origin: string, dial: () => Promise<Socket | TLSSocket>): Http1 {
  let latest = createLane(origin, dial);
  /** The one in use, and those before it that still have something under way. */
  const all = new Set([latest]);

  async function retire(lane: Lane): Promise<void> {
    try {
      await lane.pool.close();
    } catch {
      // Destroyed while it was closing, which is closed too.
    }
    all.delete(lane);
  }

  return {
    send(request) {
      const lane = latest;
      // Whoever gave up waiting for an answer may have met a machine that vanished, and the unused
      // connections beside this one would then cost the next callers a deadline each.
      const onSilence = () => {
        if (latest !== lane) return;
        latest = createLane(origin, dial);
        all.add(latest);
        void retire(lane);
      };
      return new Promise((resolve, reject) => {
        new Exchange(request, { resolve, reject, onSilence }, lane).start();
      });
    },
    async retire() {
      await Promise.all([...all].map(retire));
    },
    async close(reason) {
      await Promise.all([...all].map(({ pool }) => pool.destroy(reason)));
    },
  };
}

interface Lane {
  readonly pool: Pool;
  /** Exchanges that no connection has been found for yet. */
  readonly waiting: Set<Exchange>;
}

function createLane(origin: string, dial: () => Promise<Socket | TLSSocket>): Lane {
  const waiting = new Set<Exchange>();
  // undici replaces the connection of an exchange that was given up, with nobody there to use it. Without
  // this, 200 watches that end would open 200 connections.
  const dialIfWanted = () =>
    waiting.size > 0 ? dial() : Promise.reject(new Error("nobody waits for this connection"));
  const pool = new Pool(origin, {
    // One a request under way. The client bounds requests and an informer is one watch a kind, so the
    // pool needs no bound of its own; with one, requests would wait for watches that never end.
    connections: null,
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    // Deadlines are the caller's: a watch may say nothing for hours and a streamed list take minutes to begin.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (_options, callback) => {
      dialIfWanted().then(
        (socket) => callback(null, socket),
        (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
      );
    },
  });
  return { pool, waiting };
}

/** Whoever waits for status and headers. */
interface Head {
  readonly resolve: (response: WireResponse) => void;
  readonly reject: (error: Error) => void;
  /** The caller gave up on a request that was sent and had no answer. */
  readonly onSilence: () => void;
}

/** One request on its way, as undici reports it. Settles once; what comes later is ignored. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: WireRequest;
  readonly #head: Head;
  readonly #lane: Lane;
  #controller: Dispatcher.DispatchController | undefined;
  #body: WireBody | undefined;
  #aborted: Error | undefined;

  constructor(request: WireRequest, head: Head, lane: Lane) {
    this.#request = request;
    this.#head = head;
    this.#lane = lane;
  }

  start(): void {
    const { method, path, headers, body, signal } = this.#request;
    if (signal?.aborted === true) {
      this.#head.reject(abortReason(signal));
      return;
    }
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#lane.waiting.add(this);
    try {
      // `reset: false`: undici would close the connection after a DELETE with a body, which is our every delete.
      this.#lane.pool.dispatch(
        {
          method,
          path,
          headers: copyHeaders(headers),
          body: body ?? null,
          reset: false,
        },
        this,
      );
    } catch (error) {
      this.onResponseError(undefined, error);
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#lane.waiting.delete(this);
    if (this.#aborted !== undefined) controller.abort(this.#aborted);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: ReceivedHeaders): void {
    // 103 Early Hints and their like: the answer is still to come.
    if (status < 200) return;
    this.#body = new WireBody({
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      cancel: () => {
        this.#release();
        controller.abort(new Error("the reader left"));
      },
    });
    this.#head.resolve({ status, headers: joinHeaders(headers), body: this.#body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#release();
    this.#body?.end();
  }

  onResponseError(_controller: unknown, error: unknown): void {
    this.#release();
    if (this.#aborted !== undefined) return;
    const failure = toKubeError(this.#request, error, { sent: this.#controller !== undefined });
    if (this.#body === undefined) this.#head.reject(failure);
    else this.#body.fail(failure);
  }

  readonly #onAbort = (): void => {
    const { signal } = this.#request;
    if (signal === undefined) return;
    this.#aborted = abortReason(signal);
    this.#lane.waiting.delete(this);
    // At once, not when undici gets to it: the request may still be waiting for a connection.
    this.#head.reject(this.#aborted);
    this.#body?.abort(this.#aborted);
    if (this.#controller !== undefined && this.#body === undefined) this.#head.onSilence();
    this.#controller?.abort(this.#aborted);
  };

  #release(): void {
    this.#lane.waiting.delete(this);
    this.#request.signal?.removeEventListener("abort", this.#onAbort);
  }
}
