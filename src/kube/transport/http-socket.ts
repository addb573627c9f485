import type { EventEmitter } from "node:events";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import { abortReason } from "../../base/clock.ts";
import { DialError, toDialError } from "./http-errors.ts";

/** The two steps of every connection, to a server or to a proxy. Both end with the signal, which carries the deadline. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Idle time before the kernel asks whether the other machine still exists. */
const TCP_KEEP_ALIVE_MS = 30_000;

export async function openTcp({ host, port }: Target, signal: AbortSignal): Promise<Socket> {
  const socket = connectTcp({
    host,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  });
  await event(socket.on("error", ignore), "connect", { peer: `${host}:${port}`, signal });
  return socket;
}

/** Between two owners, or while torn down, a socket may fail with nobody listening; that must not end the process. */
const ignore = (): void => {};

export interface SecureOptions {
  /** What the certificate is checked against, where `servername` is absent. */
  readonly host: string;
  readonly servername?: string;
  readonly secureContext?: SecureContext;
  readonly rejectUnauthorized: boolean;
  readonly ALPNProtocols?: string[];
}

export async function startTls(socket: Socket, options: SecureOptions, waiting: Waiting): Promise<TLSSocket> {
  const secured = connectTls({ ...options, socket });
  await event(secured.on("error", ignore), "secureConnect", waiting);
  return secured;
}

/** An address is checked against the certificate too, but may not be sent as SNI (RFC 6066, section 3). */
export function nameOptions(host: string): Pick<SecureOptions, "host" | "servername"> {
  return isIP(host) === 0 ? { host, servername: host } : { host };
}

export function targetOf(url: URL, defaultPort = url.protocol === "https:" ? 443 : 80): Target {
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? defaultPort : Number(url.port),
  };
}

export interface Waiting {
  /** Who is waited for, as errors name it. */
  readonly peer: string;
  readonly signal: AbortSignal;
}

/** The first argument of the next `name` event. On an error, a close or an abort before it, the emitter is destroyed. */
export function event(
  emitter: EventEmitter & { destroy(): unknown },
  name: string,
  { peer, signal }: Waiting,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const release = () => {
      emitter.off(name, onEvent).off("error", onError).off("close", onClose);
      signal.removeEventListener("abort", onAbort);
    };
    const fail = (error: Error) => {
      release();
      emitter.on("error", ignore);
      emitter.destroy();
      reject(error);
    };
    const onEvent = (value: unknown) => {
      release();
      resolve(value);
    };
    const onError = (error: Error) => fail(toDialError(peer, error));
    const onClose = () =>
      fail(new DialError(`connect to ${peer}: closed by the other side before it was ready`));
    const onAbort = () => fail(abortReason(signal));
    emitter.on(name, onEvent).on("error", onError).on("close", onClose);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
