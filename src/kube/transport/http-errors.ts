import { scrubText } from "../../base/redact.ts";
import { KubeError, type KubeErrorCode } from "../errors.ts";
import type { WireRequest } from "./http-wire.ts";

/**
 * Where the errors of sockets, TLS, undici and nghttp2 become ours. The one question that matters is
 * whether the server may have seen the request: a caller repeats an `Unreachable` write at once, and
 * must look before it repeats a `ConnectionLost` one. In doubt it is `ConnectionLost`.
 */
export function toKubeError(request: WireRequest, error: unknown, { sent }: { sent: boolean }): KubeError {
  if (error instanceof KubeError) return error;
  const what = describeRequest(request);
  if (error instanceof DialError)
    return new KubeError(error.code, `${what}: ${error.message}`, { cause: error.cause });
  const code = codeOf(error);
  if (isHandshakeAlert(code))
    return new KubeError("Unreachable", `${what}: ${handshakeAlert(code)}`, { cause: error });
  if (isUnreadable(error)) {
    return new KubeError("BadResponse", `${what}: the answer is not HTTP (${reasonOf(error)})`, {
      cause: error,
    });
  }
  if (sent) {
    const doubt =
      "the connection broke before the answer was complete; it may or may not have been carried out";
    return new KubeError("ConnectionLost", `${what}: ${doubt} (${reasonOf(error)})`, { cause: error });
  }
  if (isUnsendable(code)) return new KubeError("BadInput", `${what}: ${reasonOf(error)}`, { cause: error });
  return new KubeError("Unreachable", `${what}: it was never sent (${reasonOf(error)})`, { cause: error });
}

/** The server gave its word (REFUSED_STREAM, GOAWAY) that it did not look at the request. */
export class UnprocessedError extends KubeError {
  constructor(request: WireRequest, cause: unknown) {
    const what = describeRequest(request);
    super("Unreachable", `${what}: the server sent it back without looking at it; it can be sent again`, {
      cause,
    });
  }
}

/** A connection that could not be made. Requests that waited for it add what they wanted and pass it on. */
export class DialError extends Error {
  override readonly name = "DialError";
  readonly code: KubeErrorCode;
  constructor(message: string, options: ErrorOptions & { code?: KubeErrorCode } = {}) {
    super(message, options);
    this.code = options.code ?? "Unreachable";
  }
}

/** Without the query: continue tokens are long and say nothing to a person. */
export function describeRequest({ method, path }: Pick<WireRequest, "method" | "path">): string {
  return `${method} ${path.split("?", 1)[0] ?? path}`;
}

/** What failed while connecting, with what to do about it. `peer` is the host and port that were dialled. */
export function toDialError(peer: string, error: unknown): DialError {
  if (error instanceof DialError) return error;
  const code = codeOf(error);
  const advice =
    CONNECT_ADVICE[code] ?? TLS_ADVICE[code] ?? (isHandshakeAlert(code) ? handshakeAlert(code) : undefined);
  return new DialError(`connect to ${peer}: ${advice ?? reasonOf(error)}`, { cause: error });
}

/** One line, without credentials: the deepest thing the system said. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return scrubText(String(error));
  return scrubText(error.message === "" ? codeOf(error) : (error.message.split("\n", 1)[0] ?? ""));
}

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : "";
}

const CONNECT_ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused; check that the API server runs and that `server` names its port",
  ENOTFOUND: "no such host; check `server` and the name resolution of this machine",
  EAI_AGAIN: "the name could not be resolved just now; check the DNS server of this machine",
  ENETUNREACH: "network unreachable; check the routes of this machine",
  EHOSTUNREACH: "host unreachable; check the address in `server` and the routes of this machine",
  ETIMEDOUT: "no answer; check the address in `server` and firewalls in between",
  ECONNRESET: "the connection was reset before TLS was agreed on; check that `server` names a TLS port",
  EPROTO: "the server does not speak TLS as we do; check that `server` should not begin with http://",
  ERR_SSL_WRONG_VERSION_NUMBER:
    "the server does not speak TLS there; check that `server` should not begin with http://",
};

const UNKNOWN_ISSUER =
  "it is signed by an authority we do not trust; put that authority into certificate-authority-data";

const TLS_ADVICE: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: `the server's certificate is self-signed: ${UNKNOWN_ISSUER}`,
  SELF_SIGNED_CERT_IN_CHAIN: `the server's certificate cannot be trusted: ${UNKNOWN_ISSUER}`,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: `the server's certificate cannot be trusted: ${UNKNOWN_ISSUER}`,
  UNABLE_TO_GET_ISSUER_CERT: `the server's certificate cannot be trusted: ${UNKNOWN_ISSUER}`,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: `the server's certificate cannot be trusted: ${UNKNOWN_ISSUER}`,
  CERT_SIGNATURE_FAILURE:
    "the server's certificate was not signed by the authority in certificate-authority-data, though it has its name; fetch the current authority",
  CERT_HAS_EXPIRED: "the server's certificate has expired; renew it, or check the clock of this machine",
  CERT_NOT_YET_VALID: "the server's certificate is not valid yet; check the clocks of both machines",
  CERT_REVOKED: "the server's certificate was revoked; renew it",
  ERR_TLS_CERT_ALTNAME_INVALID:
    "the server's certificate is for other names; use one of those in `server`, or set tls-server-name to one",
  INVALID_PURPOSE: "the server's certificate is not for servers; it needs the extended key usage serverAuth",
};

/** The peer ended the handshake with an alert. In TLS 1.3 that can arrive after we sent the request, unread by anyone. */
function isHandshakeAlert(code: string): boolean {
  return code.startsWith("ERR_SSL_") && code.includes("ALERT");
}

function handshakeAlert(code: string): string {
  const alert = code.replace(/^ERR_SSL_(TLSV13|TLSV1|SSLV3)?_?/, "").replace(/^ALERT_/, "");
  return `the server refused the TLS handshake (${alert}); check the client certificate in the kubeconfig, and its end date`;
}

/** Bytes came that no parser takes for an answer: the request did arrive somewhere. */
function isUnreadable(error: unknown): boolean {
  const code = codeOf(error);
  if (error instanceof Error && error.name === "HTTPParserError") return true;
  return code === "UND_ERR_HEADERS_OVERFLOW" || code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH";
}

/** Refused by our own HTTP library before a byte was written. */
function isUnsendable(code: string): boolean {
  return code === "UND_ERR_INVALID_ARG" || code.startsWith("ERR_HTTP2_") || code.startsWith("ERR_INVALID_");
}
