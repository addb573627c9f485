import { expect, test } from "vitest";
import { DialError, toDialError, toKubeError } from "./http-errors.ts";

const request = { method: "POST", path: "/api/v1/pods?continue=abc", headers: { authorization: "Bearer x" } };
const failure = (code: string, message = code) => Object.assign(new Error(message), { code });

for (const [what, error, sent, code] of [
  ["a dial that failed", new DialError("connect to a:1: refused"), false, "Unreachable"],
  ["a configuration that cannot be dialled", new DialError("bad", { code: "BadConfig" }), false, "BadConfig"],
  ["a reset before it was sent", failure("ECONNRESET"), false, "Unreachable"],
  ["a reset after it was sent", failure("ECONNRESET"), true, "ConnectionLost"],
  ["a close after it was sent", failure("UND_ERR_SOCKET", "other side closed"), true, "ConnectionLost"],
  ["something unheard of after it was sent", "what?", true, "ConnectionLost"],
  ["a refused client certificate", failure("ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED"), true, "Unreachable"],
  [
    "an answer that is not HTTP",
    Object.assign(new Error("?"), { name: "HTTPParserError" }),
    true,
    "BadResponse",
  ],
  ["headers without end", failure("UND_ERR_HEADERS_OVERFLOW"), true, "BadResponse"],
  ["a header we may not send", failure("UND_ERR_INVALID_ARG"), false, "BadInput"],
  ["a header HTTP/2 does not know", failure("ERR_HTTP2_INVALID_CONNECTION_HEADERS"), false, "BadInput"],
] as const) {
  test(`${what} is ${code}`, () => {
    const converted = toKubeError(request, error, { sent });

    expect(converted.code).toBe(code);
    expect(converted.message).toContain("POST /api/v1/pods:");
    expect(converted.message).not.toContain("continue");
  });
}

test("a connection refused on every address of a host is told once, with what to check", () => {
  const refused = new AggregateError([failure("ECONNREFUSED"), failure("ECONNREFUSED")], "");

  const error = toDialError("localhost:6443", Object.assign(refused, { code: "ECONNREFUSED" }));

  expect(error.message).toBe(
    "connect to localhost:6443: connection refused; check that the API server runs and that `server` names its port",
  );
});

test("what stands in the words of a library is not repeated if it is a secret", () => {
  const error = toKubeError(request, new Error("bad header Bearer abcdefghijkl"), { sent: true });

  expect(error.message).not.toContain("abcdefghijkl");
});
