import { BlockList, isIP } from "node:net";
import { parseUrl } from "./urls.ts";

/**
 * The proxy that HTTPS_PROXY (or HTTP_PROXY, for an http server) asks for, unless NO_PROXY exempts the server.
 * It counts only where the kubeconfig has no `proxy-url`. The rules are those of Go's net/http, because people set
 * these variables for kubectl: loopback is never proxied, and an entry without a scheme means http.
 */
export function environmentProxy(
  env: Readonly<Record<string, string | undefined>>,
  server: string,
): string | undefined {
  const url = new URL(server);
  const name = url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const written = env[name] ?? env[name.toLowerCase()] ?? "";
  const proxy = written === "" ? undefined : parseUrl(written, "http");
  if (proxy === undefined) return undefined;
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port;
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (isLoopback(host)) return undefined;
  const exempt = (env["NO_PROXY"] ?? env["no_proxy"] ?? "")
    .split(",")
    .some((entry) => covers(entry.trim(), host, port));
  return exempt ? undefined : proxy.href.replace(/\/$/, "");
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\./.test(host);
}

/** An entry is `*`, an address, a range, or a domain (with its subdomains; only those if it starts with a dot). */
function covers(entry: string, host: string, port: string): boolean {
  if (entry === "") return false;
  if (entry === "*") return true;
  if (entry.includes("/")) return inRange(entry, host);
  const [, name = "", , wantedPort] =
    /^\[?(.*?)(\])?(?::(\d+))?$/.exec(isIP(entry) === 6 ? `[${entry}]` : entry) ?? [];
  if (wantedPort !== undefined && wantedPort !== port) return false;
  const wanted = name.toLowerCase().replace(/^\*\./, ".");
  if (isIP(host) !== 0) return host === wanted;
  return wanted.startsWith(".") ? host.endsWith(wanted) : host === wanted || host.endsWith(`.${wanted}`);
}

function inRange(entry: string, host: string): boolean {
  const [network = "", bits = ""] = entry.split("/");
  const family = isIP(network);
  if (
    family === 0 ||
    isIP(host) !== family ||
    !/^\d+$/.test(bits) ||
    Number(bits) > (family === 6 ? 128 : 32)
  )
    return false;
  const type = family === 6 ? "ipv6" : "ipv4";
  const range = new BlockList();
  range.addSubnet(network, Number(bits), type);
  return range.check(host, type);
}
