import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { DialError } from "./http-errors.ts";
import { event, nameOptions, openTcp, startTls, targetOf, type Target } from "./http-socket.ts";
import { socksTunnel } from "./http-socks.ts";

/** Opens a connection to the target through a proxy; what travels in it stays ours, TLS included. */
export type Tunnel = (target: Target, signal: AbortSignal) => Promise<Socket>;

/**
 * `http:` and `https:` proxies are asked with CONNECT, `socks5:` ones as RFC 1928 says; a user and password
 * in the URL are sent to the proxy. Names are resolved by the proxy, which may know more of them.
 */
export function createTunnel(proxyUrl: string): Tunnel {
  const proxy = parseProxy(proxyUrl);
  switch (proxy.protocol) {
    case "http:":
    case "https:":
      return (target, signal) => connectThrough(proxy, target, signal);
    case "socks5:":
    case "socks5h:":
      return (target, signal) => socksTunnel(proxy, target, signal);
    default:
      throw new DialError(`proxy-url ${proxy.protocol}// is not supported; use http, https or socks5`, {
        code: "BadConfig",
      });
  }
}

function parseProxy(proxyUrl: string): URL {
  try {
    return new URL(proxyUrl);
  } catch {
    // Not repeated in the message: it may hold a password.
    throw new DialError("proxy-url is not a URL such as http://proxy:3128", { code: "BadConfig" });
  }
}

async function connectThrough(proxy: URL, target: Target, signal: AbortSignal): Promise<Socket> {
  const at = targetOf(proxy);
  const peer = `proxy ${at.host}:${at.port}`;
  let socket = await openTcp(at, signal);
  if (proxy.protocol === "https:") {
    socket = await startTls(socket, { ...nameOptions(at.host), rejectUnauthorized: true }, { peer, signal });
  }
  const authority = `${target.host.includes(":") ? `[${target.host}]` : target.host}:${target.port}`;
  const authorization = basicOf(proxy);
  const request = httpRequest({
    method: "CONNECT",
    path: authority,
    createConnection: () => socket,
    headers: {
      host: authority,
      ...(authorization === undefined ? {} : { "proxy-authorization": authorization }),
    },
  });
  request.end();
  const { statusCode = 0 } = (await event(request, "connect", { peer, signal })) as IncomingMessage;
  if (statusCode >= 200 && statusCode < 300) return socket;
  socket.destroy();
  throw new DialError(`connect to ${authority}: ${peer} answered ${statusCode}; ${adviceFor(statusCode)}`);
}

function adviceFor(statusCode: number): string {
  if (statusCode === 407) return "put the right user and password into proxy-url";
  if (statusCode === 403) return "the proxy does not allow this host";
  return "check that the proxy can reach the API server";
}

function basicOf({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}
