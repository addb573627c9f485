import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import { abortReason, type Clock, type Timer } from "../../base/clock.ts";
import type { KubeError } from "../errors.ts";
import { DialError, toDialError, toKubeError, UnprocessedError } from "./http-errors.ts";
import { event, type Waiting } from "./http-socket.ts";
import { asSessionSocket } from "./http2-socket.ts";
import { copyHeaders, joinHeaders, WireBody, type WireRequest, type WireResponse } from "./http-wire.ts";

/**
 * One HTTP/2 connection and the exchanges on it.
 *
 * States: usable; suspect (an exchange was given up unanswered: a ping decides, and until it is back
 * nothing new goes here); closing (the server said GOAWAY, or we retired it: what is under way finishes);
 * closed. While exchanges are open it is pinged, so that a machine that vanished without a word costs its
 * watches `pingEveryMs + pingTimeoutMs` instead of forever.
 */
export interface Http2Health {
  readonly pingEveryMs: number;
  readonly pingTimeoutMs: number;
}

/** client-go's numbers. */
export const DEFAULT_HEALTH: Http2Health = { pingEveryMs: 30_000, pingTimeoutMs: 15_000 };

/**
 * What one stream may send ahead of its reader, so also what a stuck reader makes us hold. At 1 ms round
 * trip it allows 256 MB/s.
 */
const STREAM_WINDOW_BYTES = 256 * 1024;

/** Node takes bytes off this window as they arrive, read or not, so that one stuck reader cannot starve the others. */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;

/** Past it Node refuses new streams on a connection. Its default of 10 MB is 40 readers that are stuck. */
const SESSION_MEMORY_MB = 256;

/** Streams we put on one connection even if the server takes more: one TCP connection is one loss to wait for. */
const STREAMS_MAX = 1_000;

const PING_GRACE_MS = 1_000;

/** How long an unused connection is kept; as for HTTP/1.1, less than servers keep theirs. */
const IDLE_MS = 30_000;

const BODY_FOLLOWS = { endStream: false };
const NOTHING_FOLLOWS = { endStream: true };

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

export class Http2Connection {
  readonly #clock: Clock;
  readonly #session: ClientHttp2Session;
  readonly #health: Http2Health;
  readonly #socket: TLSSocket;
  #streams = 0;
  #suspect = false;
  #draining = false;
  /** Counts what the server sent; unchanged since a request left means that nothing came since. */
  #received = 0;
  #nextPing: Timer | undefined;
  #lastProcessed = Infinity;

  private constructor(
    { clock }: { clock: Clock },
    session: ClientHttp2Session,
    socket: TLSSocket,
    health: Http2Health,
  ) {
    this.#clock = clock;
    this.#session = session;
    this.#socket = socket.unref();
    this.#health = health;
    session.on("goaway", (code: number, lastStreamId: number) => {
      this.#lastProcessed = lastStreamId;
      if (code === NGHTTP2_NO_ERROR) this.#drain();
    });
    session.on("close", () => this.#stopPinging());
    session.setTimeout(IDLE_MS, () => {
      if (this.#streams === 0) this.#drain();
    });
  }

  /** Resolves when the server has said how many streams it takes: asking for more would queue behind watches. */
  static async open(
    deps: { clock: Clock },
    socket: TLSSocket,
    options: Waiting & { readonly origin: string; readonly health: Http2Health },
  ): Promise<Http2Connection> {
    const session = connect(options.origin, {
      createConnection: () => asSessionSocket(socket),
      maxSessionMemory: SESSION_MEMORY_MB,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    // Each stream reports the same error to whoever waits for it.
    session.on("error", () => {});
    await event(session, "remoteSettings", { peer: options.peer, signal: endOf(socket, options) });
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    return new Http2Connection(deps, session, socket, options.health);
  }

  /** Nothing happens on it any more. */
  get gone(): boolean {
    return this.#session.destroyed;
  }

  get hasRoom(): boolean {
    if (this.gone || this.#session.closed || this.#draining || this.#suspect) return false;
    // A server that allows 0 streams for now still gets the request; nghttp2 sends it when it may.
    const allowed = this.#session.remoteSettings.maxConcurrentStreams ?? STREAMS_MAX;
    return this.#streams < Math.min(Math.max(1, allowed), STREAMS_MAX);
  }

  send(request: WireRequest): Promise<WireResponse> {
    const { method, path, headers, body, signal } = request;
    if (signal?.aborted === true) return Promise.reject(abortReason(signal));
    let stream: ClientHttp2Stream;
    try {
      const all = copyHeaders(headers);
      all[":method"] = method;
      all[":path"] = path;
      stream = this.#session.request(all, body === undefined ? NOTHING_FOLLOWS : BODY_FOLLOWS);
    } catch (error) {
      return Promise.reject(toKubeError(request, error, { sent: false }));
    }
    if (body !== undefined) stream.end(body);
    this.#opened();
    return this.#receive(request, stream);
  }

  /** Takes nothing new; resolves when what was under way has ended. */
  retire(): Promise<void> {
    this.#draining = true;
    if (this.gone) return Promise.resolve();
    return new Promise((resolve) => {
      this.#session.once("close", resolve);
      if (this.#streams === 0) this.#session.destroy();
    });
  }

  destroy(reason: Error): void {
    this.#session.destroy(reason);
  }

  #receive(request: WireRequest, stream: ClientHttp2Stream): Promise<WireResponse> {
    return new Promise((resolve, reject) => {
      const receivedBefore = this.#received;
      let body: WireBody | undefined;
      let failure: Error | undefined;
      const { signal } = request;
      const onAbort = () => {
        if (signal === undefined) return;
        const reason = abortReason(signal);
        reject(reason);
        body?.abort(reason);
        stream.close(NGHTTP2_CANCEL);
        if (this.#received === receivedBefore) this.#verify();
      };
      signal?.addEventListener("abort", onAbort, { once: true });

      stream.on("response", (headers) => {
        body = this.#bodyOf(stream);
        resolve({ status: Number(headers[":status"]), headers: joinHeaders(headers), body });
      });
      stream.on("error", (error: Error) => {
        failure = error;
      });
      stream.on("close", () => {
        signal?.removeEventListener("abort", onAbort);
        this.#ended();
        // Nearly every stream ends so; an error nobody will read would cost a stack trace each time.
        if (body?.isOpen === false) return;
        const error = this.#failureOf(request, stream, failure);
        reject(error);
        body?.fail(error);
      });
    });
  }

  /** Listens from here on and not earlier: bytes may be here before `response` is told. */
  #bodyOf(stream: ClientHttp2Stream): WireBody {
    this.#received++;
    const body = new WireBody({
      pause: () => stream.pause(),
      resume: () => stream.resume(),
      cancel: () => stream.close(NGHTTP2_CANCEL),
    });
    stream.on("data", (chunk: Uint8Array) => {
      this.#received++;
      body.push(chunk);
    });
    stream.on("end", () => {
      // A cut connection ends its streams too, as cancelled.
      if (stream.rstCode === NGHTTP2_NO_ERROR) body.end();
    });
    return body;
  }

  /** What it means that the stream closed before its answer was complete. */
  #failureOf(request: WireRequest, stream: ClientHttp2Stream, error: Error | undefined): KubeError {
    const refused =
      stream.rstCode === NGHTTP2_REFUSED_STREAM || (stream.id ?? Infinity) > this.#lastProcessed;
    if (refused) return new UnprocessedError(request, error);
    const cause = error ?? new Error(`stream closed with code ${stream.rstCode}`);
    return toKubeError(request, cause, { sent: true });
  }

  /** Asks whether anybody is still there; until the answer no new exchange is put here. */
  #verify(): void {
    if (this.#suspect || this.gone) return;
    this.#suspect = true;
    this.#ping();
  }

  #ping(): void {
    const { pingTimeoutMs } = this.#health;
    const giveUp = () => this.destroy(new Error(`no answer to a ping in ${pingTimeoutMs} ms`));
    let deadline = this.#clock.after(pingTimeoutMs, () => {
      // If it was this process that stood still, the answer is waiting to be read: one more turn for it.
      deadline = this.#clock.after(Math.min(PING_GRACE_MS, pingTimeoutMs), giveUp);
    });
    const sent = this.#session.ping((error) => {
      deadline.cancel();
      if (error !== null) return;
      this.#suspect = false;
    });
    // Refused when 10 pings are unanswered; the first of those has a deadline already.
    if (!sent) deadline.cancel();
  }

  #opened(): void {
    if (this.#streams++ > 0) return;
    this.#socket.ref();
    this.#schedulePing();
  }

  #ended(): void {
    if (--this.#streams > 0) return;
    this.#stopPinging();
    // An unused connection must not keep the process alive.
    this.#socket.unref();
    if (this.#draining) this.#session.destroy();
  }

  /**
   * Lets the last exchanges end. Node closes a session by itself after a GOAWAY, and from then on answers our
   * pings itself too: a peer that vanishes while its last watches run on would go unnoticed.
   */
  #drain(): void {
    this.#draining = true;
    this.#session.close = () => {};
    if (this.#streams === 0) this.#session.destroy();
  }

  #schedulePing(): void {
    this.#nextPing = this.#clock.after(this.#health.pingEveryMs, () => {
      if (this.#session.destroyed) return;
      this.#ping();
      this.#schedulePing();
    });
  }

  #stopPinging(): void {
    this.#nextPing?.cancel();
    this.#nextPing = undefined;
  }
}

/**
 * Aborts with the caller's signal, and when the socket fails. A session whose socket fails before the first
 * frame says nothing about it (Node 20), and a refused client certificate is just that.
 */
function endOf(socket: TLSSocket, { peer, signal }: Waiting): AbortSignal {
  const broken = new AbortController();
  socket.once("error", (error) => broken.abort(toDialError(peer, error)));
  socket.once("close", () => broken.abort(new DialError(`connect to ${peer}: closed before HTTP/2 began`)));
  return AbortSignal.any([signal, broken.signal]);
}
