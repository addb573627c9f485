import type { Clock } from "../../base/clock.ts";
import { createSystemClock } from "../../base/system-clock.ts";
import type { ClientCertificate, ClusterAccess, Credential } from "./access.ts";
import { authenticated } from "./authenticate.ts";
import { KubeError } from "../errors.ts";
import { createChannel, type Channel } from "./http-channel.ts";
import { describeRequest, toKubeError } from "./http-errors.ts";
import { type WireRequest, type WireResponse } from "./http-wire.ts";
import { DEFAULT_HEALTH, type Http2Health } from "./http2-connection.ts";
import type { Transport, TransportRequest } from "./transport.ts";

export interface HttpTransportOptions {
  /** Who we are in the server's audit log: `mooring/1.2.3 (controller)`. */
  readonly userAgent?: string;
  /** Of one answer read at once; streams have no bound. */
  readonly responseBytesMax?: number;
  /** How a vanished peer is noticed; see `Http2Connection`. */
  readonly health?: Http2Health;
  /** For the timeouts of connecting and of pings. */
  readonly clock?: Clock;
}

/** V8's longest string, 2^29 - 24 characters; UTF-8 never has fewer bytes than that. */
const RESPONSE_BYTES_MAX = 2 ** 29 - 24;

/** Enough of a 401 to keep its connection; the text is of no use. */
const DISCARDED_BYTES_MAX = 64 * 1024;

/**
 * The transport over real sockets: HTTP/2 where TLS offers it, HTTP/1.1 otherwise. The contract is in
 * `transport.ts`.
 *
 * Bodies are asked for uncompressed: gzip costs the API server far more than a cluster's network does.
 * Redirects are answers like any other and not followed, so that a credential goes to nobody else.
 */
export function createHttpTransport(access: ClusterAccess, options: HttpTransportOptions = {}): Transport {
  const { responseBytesMax = RESPONSE_BYTES_MAX } = options;
  const server = parseServer(access.server);
  const prefix = server.pathname.replace(/\/+$/, "");
  const channels = createChannels(access, server, options);

  const exchange = (request: TransportRequest): Promise<WireResponse> =>
    authenticated(access.credentials, request.signal, {
      send: async (credential) => {
        const wire = toWire(request, credential);
        return checked(wire, await channels.current(wire, credential.clientCertificate).send(wire));
      },
      discard: async ({ body }) => {
        await body.text("the answer to a refused credential", DISCARDED_BYTES_MAX).catch(() => undefined);
      },
    });

  const userAgent = { "user-agent": options.userAgent ?? "mooring" };
  const impersonation = lowerCased(access.impersonation);

  const toWire = (request: TransportRequest, { authorization }: Credential): WireRequest => {
    const headers: Record<string, string | readonly string[]> = {
      ...userAgent,
      ...request.headers,
      ...impersonation,
    };
    if (authorization !== undefined) headers["authorization"] = authorization;
    const { method, body, signal } = request;
    return { method, path: prefix + checkedPath(request.path), headers, body, signal };
  };

  return {
    async request(request) {
      const { status, headers, body } = await exchange(request);
      return { status, headers, body: await body.text(describeRequest(request), responseBytesMax) };
    },
    stream: exchange,
    close: () => channels.close(),
  };
}

interface Channels {
  /** The channel for this client certificate and the authorities of now; a new one replaces the last one's channel. */
  current(request: WireRequest, certificate: ClientCertificate | undefined): Channel;
  close(): Promise<void>;
}

function createChannels(
  access: ClusterAccess,
  server: URL,
  { clock = createSystemClock(), health = DEFAULT_HEALTH }: HttpTransportOptions,
): Channels {
  let latest:
    { certificate: ClientCertificate | undefined; ca: string | undefined; channel: Channel } | undefined;
  /** The latest, and those before it that still have something under way. */
  const all = new Set<Channel>();
  let closed = false;

  function replace(certificate: ClientCertificate | undefined): Channel {
    const { tls, proxyUrl } = access;
    const channel = createChannel({ clock }, server, {
      tls,
      proxyUrl,
      clientCertificate: certificate,
      health,
    });
    const last = latest?.channel;
    void last?.retire().finally(() => all.delete(last));
    latest = { certificate, ca: tls.ca, channel };
    all.add(channel);
    return channel;
  }

  return {
    current(request, certificate) {
      if (closed)
        throw new KubeError("Unreachable", `${describeRequest(request)}: this transport was closed`);
      const { ca } = access.tls;
      if (latest !== undefined && latest.ca === ca && isSame(latest.certificate, certificate)) {
        return latest.channel;
      }
      try {
        return replace(certificate);
      } catch (error) {
        throw toKubeError(request, error, { sent: false });
      }
    },
    async close() {
      closed = true;
      const reason = new Error("this transport was closed");
      await Promise.all([...all].map((channel) => channel.close(reason)));
    },
  };
}

function isSame(a: ClientCertificate | undefined, b: ClientCertificate | undefined): boolean {
  return a?.certificate === b?.certificate && a?.key === b?.key;
}

function lowerCased<T>(headers: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** A body in an encoding that nobody asked for would be read as garbage. */
function checked(request: WireRequest, response: WireResponse): WireResponse {
  const encoding = response.headers["content-encoding"];
  if (encoding === undefined || encoding === "identity") return response;
  response.body.cancel();
  throw new KubeError(
    "BadResponse",
    `${describeRequest(request)}: the answer is encoded as ${encoding}, which was not asked for; ` +
      `look for a proxy that compresses`,
  );
}

/** A space or a line break would end the request line, and begin another one of the sender's choice. */
function checkedPath(path: string): string {
  if (/^\/[\u0021-\u007e]*$/.test(path)) return path;
  throw new KubeError(
    "BadInput",
    `path ${JSON.stringify(path)}: it must begin with / and be percent-encoded`,
  );
}

function parseServer(server: string): URL {
  let url: URL;
  try {
    url = new URL(server);
  } catch {
    throw new KubeError("BadConfig", "cluster `server` is not a URL such as https://host:6443");
  }
  if (url.protocol === "https:" || url.protocol === "http:") return url;
  throw new KubeError(
    "BadConfig",
    `cluster \`server\` begins with ${url.protocol}//; it must be https:// or http://`,
  );
}
