import { once } from "node:events";
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from "node:http";
import {
  constants,
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type Http2Session,
} from "node:http2";
import { createServer as createHttps } from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";
import { createScript, type FaultScript, type Reply, type SeenRequest } from "./faults.ts";
import { createRelay } from "./relay.ts";

/**
 * An HTTP server on 127.0.0.1 that does what its script says: cuts, silence, half bodies, storms of 429.
 * Nothing in it waits for time; what dribbles, dribbles when the test writes.
 */
export interface FaultyServer extends FaultScript {
  readonly url: string;
  /** Connections accepted since the start, and those still open. */
  readonly connections: { readonly accepted: number; readonly open: number };
  /** Cuts every connection; new ones are accepted. */
  cutAll(): void;
  /** What is open goes silent and stays open; see `Relay.freeze`. */
  freeze(): Promise<void>;
  close(): Promise<void>;
}

export interface FaultyServerOptions {
  readonly protocol: "http/1.1" | "https/1.1" | "https/2";
  /** PEM, for the two https ones. */
  readonly certificate?: string;
  readonly key?: string;
  /** Of client certificates, which are then asked for. */
  readonly clientCa?: string;
  /** HTTP/2 streams a connection may carry. */
  readonly streamsMax?: number;
}

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

export async function createFaultyServer(options: FaultyServerOptions): Promise<FaultyServer> {
  const script = createScript();
  const server = listen(options, (request, response) => {
    const cut = () => relay.cut(request.socket.remotePort);
    // Taken now: a connection that ends while the body is read no longer says whose it was.
    const isPromisedAway = promiseOf(request);
    readRequest(request).then(
      (seen) => (isPromisedAway() ? undefined : script.take(seen)(createReply(request, response, cut), seen)),
      () => {
        // The client left before it had sent the whole request: then it was not seen.
      },
    );
  });
  const ends = new Set<{ destroy(): void }>();
  const track = (end: Http2Session | Socket) => {
    ends.add(end);
    end.on("close", () => ends.delete(end));
  };
  server.on("connection", track).on("session", track);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const relay = await createRelay((server.address() as AddressInfo).port);
  return {
    on: (path, ...behaviours) => script.on(path, ...behaviours),
    arrived: (path, count) => script.arrived(path, count),
    seen: script.seen,
    url: `${options.protocol === "http/1.1" ? "http" : "https"}://127.0.0.1:${relay.port}`,
    get connections() {
      return { accepted: relay.accepted, open: relay.open };
    },
    cutAll: () => relay.cutAll(),
    freeze: () => relay.freeze(),
    async close() {
      const closed = once(server, "close");
      server.close();
      await relay.close();
      // Node's HTTP/2 may miss the end of a connection, and the server would wait for it.
      for (const end of [...ends]) end.destroy();
      await closed;
    },
  };
}

function listen(
  { protocol, certificate, key, clientCa, streamsMax = 250 }: FaultyServerOptions,
  onRequest: (request: Request, response: Response) => void,
): Server {
  const tls = {
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key }),
    ...(clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true }),
  };
  // Node closes unused HTTP/1.1 connections after 5 s by default; a script should say when.
  if (protocol === "http/1.1") return createHttp1({ keepAliveTimeout: 0 }, onRequest);
  if (protocol === "https/1.1") return createHttps({ ...tls, keepAliveTimeout: 0 }, onRequest);
  const server = createSecureServer({ ...tls, settings: { maxConcurrentStreams: streamsMax } }, onRequest);
  server.on("sessionError", () => {});
  return server;
}

async function readRequest(request: Request): Promise<SeenRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers: Record<string, string | string[]> = {};
  // HTTP/1.1 joins several lines of one name; the raw list keeps them apart, and HTTP/2 has the same.
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    const name = (request.rawHeaders[index] ?? "").toLowerCase();
    const value = request.rawHeaders[index + 1] ?? "";
    const before = headers[name];
    headers[name] = before === undefined ? value : [before, value].flat();
  }
  return {
    method: request.method ?? "",
    path: request.url ?? "",
    headers,
    body: Buffer.concat(chunks).toString("utf8"),
  };
}

function createReply(request: Request, response: Response, cut: () => void): Reply {
  const closed = new Promise<void>((resolve) => response.once("close", resolve));
  const stream = "stream" in request ? request.stream : undefined;
  response.on("error", () => {});
  return {
    closed,
    cut,
    head(status, headers = {}) {
      response.writeHead(status, headers);
      // HTTP/1.1 holds headers back until there is a body to go with them.
      if ("flushHeaders" in response) response.flushHeaders();
    },
    async write(chunk) {
      const written = new Promise<void>((resolve) => {
        // Called back once the operating system or the stream's window took the bytes.
        (response as ServerResponse).write(chunk, () => resolve());
      });
      await Promise.race([written, closed]);
    },
    end: () => void response.end(),
    reset: () => (stream === undefined ? cut() : stream.close(constants.NGHTTP2_INTERNAL_ERROR)),
    goAway: () => sayGoAway(stream?.session),
  };
}

/** Connections that said GOAWAY, and the last stream that they promised to look at. */
const leaving = new WeakMap<Http2Session, number>();

/** Once a connection: a second one that names a later stream would break the protocol. */
function sayGoAway(session: Http2Session | undefined): void {
  if (session === undefined || leaving.has(session)) return;
  const last = session.state.lastProcStreamID ?? 0;
  leaving.set(session, last);
  session.goaway(constants.NGHTTP2_NO_ERROR, last);
}

/**
 * Node still hands over what arrives between the call of `goaway` and its frame, and even what it finds in the
 * buffer of a connection that is gone; the client was told otherwise.
 */
function promiseOf(request: Request): () => boolean {
  if (!("stream" in request)) return () => false;
  const { id = 0, session } = request.stream;
  return () => session === undefined || id > (leaving.get(session) ?? Infinity);
}
