import type { Target } from "./server.ts";

export const PEER_OPTIONS = ["--peer-apiserver", "--peer-token"] as const;

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

/** A real server on this machine, whose certificate nobody checks: therefore only here. */
export function parsePeer(args: readonly string[]): { peer?: Target } {
  const [url, token] = PEER_OPTIONS.map((name) => {
    const at = args.indexOf(name);
    return at < 0 ? undefined : args[at + 1];
  });
  if (url === undefined && token === undefined) return {};
  if (url === undefined || token === undefined) throw new Error(`give both of ${PEER_OPTIONS.join(" and ")}`);
  const { protocol, hostname, origin } = new URL(url);
  if (protocol !== "https:" || !LOOPBACK.includes(hostname)) {
    throw new Error(`--peer-apiserver ${url} must be https on ${LOOPBACK.join(", ")}`);
  }
  return { peer: { url: origin, token } };
}
