import { existsSync, readFileSync } from "node:fs";
import type { Target } from "./server.ts";

export const PEER_OPTIONS = ["--peer-apiserver", "--peer-token", "--peer-pids"] as const;

/** A real server, and the processes that it consists of, if its memory shall be looked at. */
export interface Peer extends Target {
  readonly pids: readonly number[];
}

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

/** A real server on this machine, whose certificate nobody checks: therefore only here. */
export function parsePeer(args: readonly string[]): { peer?: Peer } {
  const [url, token, pids] = PEER_OPTIONS.map((name) => {
    const at = args.indexOf(name);
    return at < 0 ? undefined : args[at + 1];
  });
  if (url === undefined && token === undefined && pids === undefined) return {};
  if (url === undefined || token === undefined)
    throw new Error("give both of --peer-apiserver and --peer-token");
  const { protocol, hostname, origin } = new URL(url);
  if (protocol !== "https:" || !LOOPBACK.includes(hostname)) {
    throw new Error(`--peer-apiserver ${url} must be https on ${LOOPBACK.join(", ")}`);
  }
  return { peer: { url: origin, token: readToken(token), pids: parsePids(pids) } };
}

/** A token, or better the file it is in: everyone on the machine sees the arguments of a process. */
function readToken(value: string): string {
  return existsSync(value) ? readFileSync(value, "utf8").trim() : value;
}

function parsePids(value: string | undefined): readonly number[] {
  const pids = value === undefined ? [] : value.split(",").map(Number);
  if (pids.some((pid) => !Number.isSafeInteger(pid) || pid < 1))
    throw new Error(`--peer-pids ${value ?? ""} must be numbers with commas between them`);
  return pids;
}
