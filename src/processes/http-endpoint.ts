import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { systemCode } from "../kube/config/world.ts";
import { failure, respond, type EndpointResponse, type EndpointRoutes } from "./endpoint.ts";
import { ProcessError } from "./errors.ts";

/** The socket for health, metrics and debug pages of a process. Plain HTTP/1.1, reads only. */
export interface HttpEndpoint {
  /** Where it really listens: the port is another where 0 was asked for. */
  readonly url: string;
  /** Lets answers under way finish, for a second at most. */
  stop(): Promise<void>;
}

export interface HttpEndpointOptions {
  /** Empty for every interface. */
  readonly host: string;
  readonly port: number;
  readonly routes: EndpointRoutes;
}

/** A probe, a scraper and a few people; what is above waits in vain and costs nothing. */
const CONNECTIONS_MAX = 256;
const HEADER_BYTES_MAX = 8 * 1024;
/** To send a request whose headers are a few hundred bytes. */
const REQUEST_MS_MAX = 5_000;
/** Without a byte in either direction: a reader that stopped reading is let go. */
const SILENCE_MS_MAX = 30_000;
const STOP_MS = 1_000;

export async function startHttpEndpoint(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  { host, port, routes }: HttpEndpointOptions,
): Promise<HttpEndpoint> {
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: REQUEST_MS_MAX,
      requestTimeout: REQUEST_MS_MAX,
      keepAliveTimeout: REQUEST_MS_MAX,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => void answer({ log, routes }, request, response),
  );
  server.maxConnections = CONNECTIONS_MAX;
  server.setTimeout(SILENCE_MS_MAX);
  await listen(server, host, port);
  return { url: urlOf(server), stop: () => stop(server, clock) };
}

async function answer(
  { log, routes }: { log: Logger; routes: EndpointRoutes },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "", url = "", headers, socket } = request;
  // Nothing here reads a body; one that is sent all the same is not waited for.
  request.resume();
  let answered: EndpointResponse;
  try {
    const remoteAddress = socket.remoteAddress ?? "";
    answered = await respond(routes, { method, url, host: headers.host ?? "", remoteAddress });
  } catch (error) {
    log.error("endpoint failed to answer", { method, url, error });
    answered = failure(500, "InternalError", "the page could not be made; the log of the process says why");
  }
  const { status, contentType, body } = answered;
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-cache, private",
    "x-content-type-options": "nosniff",
    ...answered.headers,
  });
  response.end(method === "HEAD" ? undefined : body);
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  // Without a host node listens on :: for both families, or on 0.0.0.0 where there is no IPv6.
  server.listen({ port, ...(host === "" ? {} : { host }) });
  try {
    await once(server, "listening");
  } catch (error) {
    throw cannotListen(`${host}:${port}`, error);
  }
}

function urlOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo;
  const reachable = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

async function stop(server: Server, clock: Clock): Promise<void> {
  const closed = once(server, "close");
  server.close();
  const killer = clock.after(STOP_MS, () => server.closeAllConnections());
  await closed;
  killer.cancel();
}

function cannotListen(address: string, error: unknown): unknown {
  const why = LISTEN_PROBLEMS[systemCode(error) ?? ""];
  if (why === undefined) return error;
  const message = `cannot listen on ${address}: ${why}; choose another with --http-endpoint HOST:PORT`;
  return new ProcessError("BadAddress", message, { cause: error });
}

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "ports below 1024 need root",
  ENOTFOUND: "that name has no address",
};
