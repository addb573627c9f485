import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Handler, HandlerRequest, HandlerResponse } from "../kube/handler.ts";
import { identifyPeer, type Peer } from "./authentication.ts";
import { unauthorized } from "./auth/forbidden.ts";
import { installServerCertificate } from "./auth/rotation.ts";
import { toResponse } from "./errors.ts";
import { readRequestBody } from "./server-body.ts";
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
  /** Takes no new requests, ends watches cleanly, lets the rest finish, then closes. */
  stop(): Promise<void>;
}

export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** Go keeps idle connections for 90 s; closing them sooner would meet a POST on its way. */
const KEEP_ALIVE_MS = 180_000;
/** For the headers, and for everything a request sends: against clients that send a byte a minute. */
const HEADERS_MS = 30_000;
const REQUEST_MS = 60_000;

/** HTTP/2 and HTTP/1.1 over TLS around a handler. */
export async function startServer(deps: ServerDeps, options: ServerOptions): Promise<Server> {
  const server = createTlsServer(options.tls);
  const connections = trackConnections(server);
  // Not AbortSignal.any with one long-lived signal: that one would remember every request ever made.
  const inProgress = new Map<AbortController, Promise<void>>();
  let isStopping = false;
  server.on("request", (request: Request, response: Response) => {
    const work = new AbortController();
    if (isStopping) work.abort(stoppingReason());
    inProgress.set(
      work,
      serve(deps, request, response, work).finally(() => inProgress.delete(work)),
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
    isStopping = true;
    for (const work of inProgress.keys()) work.abort(stoppingReason());
    const deadline = new AbortController();
    const patience = deps.clock.sleep(options.stopMs ?? 5_000, deadline.signal).catch(() => undefined);
    await Promise.race([Promise.allSettled(inProgress.values()), patience]);
    connections.close();
    await Promise.race([closed, patience]);
    deadline.abort();
    connections.destroy();
    await closed;
  }
}

function createTlsServer({ certificate, key, clientCa }: ServerTls): Http2SecureServer {
  const server = createSecureServer({
    allowHTTP1: true,
    cert: certificate,
    key,
    ca: [clientCa].flat(),
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
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
  });
}

function stoppingReason(): Error {
  return new Error("the server is stopping");
}

/** `work` is told when nobody waits for the answer any more, or when the server stops. */
async function serve(
  deps: ServerDeps,
  request: Request,
  response: Response,
  work: AbortController,
): Promise<void> {
  const gone = new AbortController();
  response.on("close", () => {
    gone.abort();
    work.abort(new Error("the client went away"));
  });
  response.on("error", () => undefined); // "close" follows, and nobody is left to tell
  try {
    const body = await readRequestBody(request, { clock: deps.clock, deadlineMs: REQUEST_MS });
    if (body.kind === "gone") return;
    const answer =
      body.kind === "refused"
        ? toResponse(body.error)
        : await ask(deps.handler, request, body.body, work.signal);
    await sendResponse(response, answer, { gone: gone.signal, closeConnection: body.kind === "refused" });
    // The rest of a refused body is still on its way, and nobody will read it.
    if (body.kind === "refused" && "stream" in response) response.stream.close();
  } catch (error) {
    deps.log.error("request could not be answered", { method: request.method, path: request.url, error });
    response.destroy();
  }
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

/** All open connections of both protocols, so that stopping can end them. */
function trackConnections(server: Http2SecureServer): { close(): void; destroy(): void } {
  const sockets = new Set<Socket>();
  const http1 = new Set<TLSSocket>();
  const sessions = new Set<ServerHttp2Session>();
  let isClosing = false;
  server.on("connection", (socket: Socket) => keepWhileOpen(sockets, socket));
  server.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol === "h2") return;
    keepWhileOpen(http1, socket);
    // It was in its handshake when everything was told to close.
    if (isClosing) socket.end();
  });
  server.on("session", (session) => {
    keepWhileOpen(sessions, session);
    if (isClosing) session.close();
  });
  return {
    /** What was written is still delivered; over HTTP/2 streams in progress may finish. */
    close() {
      isClosing = true;
      for (const session of sessions) session.close();
      for (const socket of http1) socket.end();
    },
    destroy() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function keepWhileOpen<T extends Socket | ServerHttp2Session>(open: Set<T>, connection: T): void {
  open.add(connection);
  connection.once("close", () => open.delete(connection));
}
