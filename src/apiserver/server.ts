import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Stream,
} from "node:http2";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Handler, HandlerRequest, HandlerResponse } from "../kube/handler.ts";
import { identifyPeer, type Peer } from "./authentication.ts";
import { unauthorized } from "./auth/forbidden.ts";
import { installServerCertificate } from "./auth/rotation.ts";
import { shuttingDown, toResponse } from "./errors.ts";
import { readRequestBody } from "./server-body.ts";
import { trackConnections } from "./server-connections.ts";
import { sendResponse } from "./server-response.ts";

export interface ServerDeps {
  readonly handler: Handler;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface ServerOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** All PEM. */
  readonly tls: ServerTls;
  /** How long requests in progress may take to finish when the server stops. */
  readonly stopMs?: number;
  /** How long a client may take for the headers of a request over HTTP/1.1. */
  readonly headersMs?: number;
}

export interface ServerTls {
  readonly certificate: string;
  readonly key: string;
  /** Client certificates must come from this authority, or one of these while one replaces another. */
  readonly clientCa: string | readonly string[];
}

export interface Server {
  /** Where it listens, with the port that was picked. */
  readonly address: { readonly host: string; readonly port: number };
  /** New connections see this certificate; open ones go on with theirs. */
  useCertificate(tls: ServerTls): void;
  /**
   * Runs no request that arrives from here on, ends watches cleanly, lets the rest finish within `stopMs`, then
   * closes whatever is still open.
   */
  stop(): Promise<void>;
}

export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** Go keeps idle connections for 90 s; closing them sooner would meet a POST on its way. */
const KEEP_ALIVE_MS = 180_000;
/** For the headers, and for everything a request sends: against clients that send a byte a minute. */
const HEADERS_MS = 30_000;
const REQUEST_MS = 60_000;
/** How often these two are looked at. Node's own 30 s would let headers take twice their limit. */
const CHECK_MS = 1_000;

/** HTTP/2 and HTTP/1.1 over TLS around a handler. */
export async function startServer(deps: ServerDeps, options: ServerOptions): Promise<Server> {
  const server = createTlsServer(options);
  const connections = trackConnections(server, deps.clock);
  // Not AbortSignal.any with one long-lived signal: that one would remember every request ever made.
  const inProgress = new Map<AbortController, Promise<void>>();
  const life = { isStopping: false };
  server.on("request", (request: Request, response: Response) => {
    if ("stream" in response && connections.isLeaving(response.stream.session)) {
      response.stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    const work = new AbortController();
    // Over HTTP/1.1 nothing tells a client before it sends.
    const exchange = life.isStopping
      ? refuseLate(request, response)
      : serve(deps, { request, response, life }, work);
    inProgress.set(
      work,
      exchange.finally(() => inProgress.delete(work)),
    );
  });
  server.on("tlsClientError", (error) => deps.log.debug("TLS handshake failed", { error }));
  server.on("sessionError", (error) => deps.log.debug("HTTP/2 session failed", { error }));
  await listen(server, options);
  const { address, port } = server.address() as AddressInfo;
  return {
    address: { host: address, port },
    useCertificate: ({ certificate, key, clientCa }) =>
      installServerCertificate(server, { certificate, key, clientCas: [clientCa].flat() }),
    stop,
  };

  async function stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    life.isStopping = true;
    // The farewell first: what arrives behind it is not run, whatever is still in progress.
    connections.drain();
    for (const work of inProgress.keys()) work.abort(stoppingReason());
    const deadline = new AbortController();
    const patience = deps.clock.sleep(options.stopMs ?? 5_000, deadline.signal).catch(() => undefined);
    await Promise.race([Promise.allSettled(inProgress.values()), patience]);
    connections.endHttp1();
    await Promise.race([closed, patience]);
    deadline.abort();
    connections.destroy();
    await closed;
  }
}

function createTlsServer({ tls, headersMs = HEADERS_MS }: ServerOptions): Http2SecureServer {
  const server = createSecureServer({
    allowHTTP1: true,
    cert: tls.certificate,
    key: tls.key,
    ca: [tls.clientCa].flat(),
    minVersion: "TLSv1.2",
    // Who shows no certificate still may ask for health; who shows a wrong one gets a 401 that says so.
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: 10_000,
    // A Go process carries all its watches and requests over one connection.
    settings: { maxConcurrentStreams: 1_000 },
    // In MB. The default of 10 refuses new streams while one large list is on its way.
    maxSessionMemory: 256,
  });
  // Options of HTTP/1 connections, which this server reads from its properties.
  return Object.assign(server, {
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: headersMs,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: CHECK_MS,
  });
}

function stoppingReason(): Error {
  return new Error("the server is stopping");
}

/** A request of a client that did not know that this server stops. It was not run, so it may be sent again. */
async function refuseLate(request: Request, response: Response): Promise<void> {
  request.resume();
  await sendResponse(response, toResponse(shuttingDown()), {
    gone: goneSignal(response),
    closeConnection: true,
  });
}

/** Aborts when nobody waits for the answer any more. */
function goneSignal(response: Response, onGone: () => void = () => undefined): AbortSignal {
  const gone = new AbortController();
  response.on("close", () => {
    gone.abort();
    onGone();
  });
  response.on("error", () => undefined); // "close" follows, and nobody is left to tell
  return gone.signal;
}

/** One request and its answer. */
interface Exchange {
  readonly request: Request;
  readonly response: Response;
  readonly life: { readonly isStopping: boolean };
}

/** `work` is told when nobody waits for the answer any more, or when the server stops. */
async function serve(
  deps: ServerDeps,
  { request, response, life }: Exchange,
  work: AbortController,
): Promise<void> {
  const gone = goneSignal(response, () => work.abort(new Error("the client went away")));
  try {
    const body = await readRequestBody(request, { clock: deps.clock, deadlineMs: REQUEST_MS });
    if (body.kind === "gone") return;
    const answer =
      body.kind === "refused"
        ? toResponse(body.error)
        : await ask(deps.handler, request, body.body, work.signal);
    const closeConnection = body.kind === "refused" || life.isStopping;
    await sendResponse(response, answer, { gone, closeConnection });
    if (body.kind === "refused" && "stream" in response) await releaseSender(deps.clock, response.stream);
  } catch (error) {
    deps.log.error("request could not be answered", { method: request.method, path: request.url, error });
    response.destroy();
  }
}

/**
 * The rest of a refused body is still on its way, and nobody will read it: a reset without an error tells the client
 * to stop sending (RFC 9113, 8.1). It must come behind the end of the answer, since it drops whatever was not sent
 * yet. That end takes two or three turns of the loop, and longer to a client that does not read: a second at most.
 */
async function releaseSender(clock: Clock, stream: ServerHttp2Stream): Promise<void> {
  for (let looks = 0; looks < 30 && isEnding(stream); looks++) {
    await (looks < 10 ? turn() : clock.sleep(50));
  }
  stream.close();
}

function isEnding({ destroyed, state }: ServerHttp2Stream): boolean {
  return !destroyed && state.localClose !== 1;
}

async function ask(
  handler: Handler,
  request: Request,
  body: HandlerRequest["body"],
  signal: AbortSignal,
): Promise<HandlerResponse> {
  const peer = peerOf(request);
  // A credential that is not accepted is never ignored.
  if (peer.kind === "rejected") return toResponse(unauthorized());
  return handler({
    method: request.method ?? "",
    path: request.url ?? "",
    headers: joinHeaders(request),
    body,
    signal,
    ...(peer.kind === "user" ? { user: peer.user } : {}),
  });
}

/** A connection keeps its identity, so it is asked once. */
const peers = new WeakMap<object, Peer>();

function peerOf(request: Request): Peer {
  const session = "stream" in request ? request.stream.session : undefined;
  const connection = session ?? request.socket;
  let peer = peers.get(connection);
  if (peer === undefined) {
    peer = identifyPeer((session?.socket ?? request.socket) as TLSSocket);
    peers.set(connection, peer);
  }
  return peer;
}

function joinHeaders(request: Request): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return headers;
}

function listen(server: Http2SecureServer, { host, port }: ServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
