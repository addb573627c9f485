import type { Socket } from "node:net";
import { createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { withDeadline, type Clock } from "../../base/clock.ts";
import type { ClientCertificate, TlsOptions } from "./access.ts";
import { DialError, reasonOf } from "./http-errors.ts";
import { createTunnel } from "./http-proxy.ts";
import { nameOptions, openTcp, startTls, targetOf, type SecureOptions } from "./http-socket.ts";

/**
 * Makes connections to one server: TCP, through a proxy where there is one, TLS on top. HTTP/1.1 and
 * HTTP/2 share it, and whatever fails in here fails before a request was sent.
 */
export interface Dialer {
  /** `protocols` is offered by ALPN, best first; without TLS it is ignored. */
  dial(protocols: readonly Protocol[], signal: AbortSignal): Promise<Socket | TLSSocket>;
}

export type Protocol = "h2" | "http/1.1";

export interface DialerOptions {
  readonly tls: TlsOptions;
  readonly proxyUrl?: string | undefined;
  readonly clientCertificate?: ClientCertificate | undefined;
}

/**
 * For all steps of one connection. As client-go's: a caller with a shorter deadline aborts earlier, one
 * without still gets an answer when packets vanish.
 */
const DIAL_TIMEOUT_MS = 30_000;

export function createDialer(
  { clock }: { clock: Clock },
  server: URL,
  { tls, proxyUrl, clientCertificate }: DialerOptions,
): Dialer {
  const target = targetOf(server);
  const peer = `${target.host}:${target.port}`;
  const open = proxyUrl === undefined ? openTcp : createTunnel(proxyUrl);
  const secure =
    server.protocol === "https:" ? secureOptions(target.host, tls, clientCertificate) : undefined;
  const onDeadline = () => new DialError(`connect to ${peer}: no answer in ${DIAL_TIMEOUT_MS / 1000} s`);
  return {
    dial: (protocols, signal) =>
      withDeadline(clock, { ms: DIAL_TIMEOUT_MS, signal, onDeadline }, async (deadline) => {
        const socket = await open(target, deadline);
        if (secure === undefined) return socket;
        return startTls(socket, { ...secure, ALPNProtocols: [...protocols] }, { peer, signal: deadline });
      }),
  };
}

function secureOptions(
  host: string,
  tls: TlsOptions,
  certificate: ClientCertificate | undefined,
): SecureOptions {
  return {
    ...nameOptions(tls.serverName ?? host),
    secureContext: createContext(tls, certificate),
    rejectUnauthorized: tls.insecureSkipVerify !== true,
  };
}

/** Made once and shared by all connections: parsing the certificates costs as much as a handshake. */
function createContext({ ca }: TlsOptions, certificate: ClientCertificate | undefined): SecureContext {
  const authority = ca === undefined ? {} : { ca };
  try {
    const context = createSecureContext(authority);
    if (certificate === undefined) return context;
  } catch (error) {
    const message = `certificate-authority-data is not a PEM certificate (${reasonOf(error)})`;
    throw new DialError(message, { code: "BadConfig", cause: error });
  }
  try {
    return createSecureContext({ ...authority, cert: certificate.certificate, key: certificate.key });
  } catch (error) {
    // OpenSSL's words name the problem and never quote the key.
    const message = `the client certificate and its key cannot be used together (${reasonOf(error)})`;
    throw new DialError(message, { code: "BadConfig", cause: error });
  }
}
