import type { ExecAnswer } from "./exec-credentials.ts";
import { isMapping } from "./fields.ts";
import { certificateProblem, keyProblem, pairProblem } from "./pem.ts";
import { toBearer } from "./token.ts";

/**
 * Reads the ExecCredential that a plugin printed. `fail` makes the error from "the plugin …"; no error shows what
 * was printed, because that is the credential.
 */
export function parseExecCredential(
  apiVersion: string,
  stdout: string,
  fail: (problem: string) => Error,
): ExecAnswer {
  const status = parseStatus(apiVersion, stdout, fail);
  const token = text(status, "token", fail);
  const certificate = text(status, "clientCertificateData", fail);
  const key = text(status, "clientKeyData", fail);
  if (token === undefined && certificate === undefined && key === undefined) {
    throw fail("printed neither status.token nor status.clientCertificateData; log in again by hand");
  }
  const authorization = token === undefined ? undefined : toBearer(token);
  if (token !== undefined && authorization === undefined) {
    throw fail("printed a status.token with characters that no HTTP header can carry");
  }
  return {
    credential: {
      ...(authorization === undefined ? {} : { authorization }),
      ...clientCertificate(certificate, key, fail),
    },
    expiresAtMs: expiry(status, fail),
  };
}

type Status = Readonly<Record<string, unknown>>;

function parseStatus(apiVersion: string, stdout: string, fail: (problem: string) => Error): Status {
  const answer = parseJson(stdout);
  if (!isMapping(answer)) throw fail("did not print a JSON object; run it by hand to see what it prints");
  if (answer["kind"] !== "ExecCredential") throw fail("printed an object whose kind is not ExecCredential");
  if (answer["apiVersion"] !== apiVersion) {
    throw fail(`printed another apiVersion than the kubeconfig asks for, ${apiVersion}; make the two agree`);
  }
  if (!isMapping(answer["status"])) throw fail("printed an ExecCredential without status");
  return answer["status"];
}

function parseJson(stdout: string): unknown {
  try {
    return JSON.parse(stdout) as unknown;
  } catch {
    // The parser's message quotes what it stumbled over.
    return undefined;
  }
}

function text(status: Status, name: string, fail: (problem: string) => Error): string | undefined {
  const value = status[name];
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") throw fail(`printed a status.${name} that is not a text`);
  return value;
}

function clientCertificate(
  certificate: string | undefined,
  key: string | undefined,
  fail: (problem: string) => Error,
): Pick<ExecAnswer["credential"], "clientCertificate"> {
  if (certificate === undefined && key === undefined) return {};
  if (certificate === undefined || key === undefined) {
    throw fail(
      "printed only one of status.clientCertificateData and status.clientKeyData; both belong together",
    );
  }
  const certificateWrong = certificateProblem(certificate);
  if (certificateWrong !== undefined)
    throw fail(`printed a status.clientCertificateData that ${certificateWrong}`);
  const keyWrong = keyProblem(key) ?? pairProblem(certificate, key);
  if (keyWrong !== undefined) throw fail(`printed a status.clientKeyData that ${keyWrong}`);
  return { clientCertificate: { certificate, key } };
}

function expiry(status: Status, fail: (problem: string) => Error): number | undefined {
  const written = text(status, "expirationTimestamp", fail);
  if (written === undefined) return undefined;
  const expiresAtMs = /^\d{4}-\d\d-\d\dT/i.test(written) ? Date.parse(written) : NaN;
  if (Number.isNaN(expiresAtMs))
    throw fail("printed a status.expirationTimestamp that is not an RFC 3339 time");
  return expiresAtMs;
}
