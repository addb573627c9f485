import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { stringify } from "yaml";
import type { Clock } from "../../base/clock.ts";
import { createLogger, type LogFields } from "../../base/log.ts";
import type { ClientCertificate, ClusterAccess } from "../transport/access.ts";
import { loadClusterAccess, type LoadOptions } from "./load.ts";
import { createMemoryWorld } from "./memory-world.testing.ts";

/** Time stands still unless the test brings a clock that it moves. */
const stillClock: Clock = {
  now: () => 0,
  wall: () => new Date(Date.UTC(2026, 0, 1)),
  sleep: () => new Promise(() => undefined),
  after: () => ({ cancel: () => undefined }),
};

/** The stage of this room's tests: a machine with files and programs. */
export function given({
  files = {},
  env = {},
  homeDir,
  clock = stillClock,
}: {
  files?: Readonly<Record<string, string>>;
  env?: Readonly<Record<string, string>>;
  homeDir?: string;
  clock?: Clock;
}) {
  const world = createMemoryWorld({ files, env, ...(homeDir === undefined ? {} : { homeDir }) });
  const lines: { level: string; message: string; fields: LogFields }[] = [];
  const log = createLogger((level, message, fields) => void lines.push({ level, message, fields }));
  return {
    world,
    lines,
    load: (options?: LoadOptions): Promise<ClusterAccess> =>
      loadClusterAccess({ world, clock, log }, options),
    /** Warnings so far, by their message. */
    warnings: () => lines.filter((line) => line.level === "warn").map((line) => line.message),
  };
}

export const KUBECONFIG = "/home/me/.kube/config";

/** A kubeconfig with one context; name only what matters. */
export function kubeconfig({
  name = "dev",
  cluster = {},
  user = {},
  context = {},
  ...rest
}: {
  name?: string;
  cluster?: Readonly<Record<string, unknown>>;
  user?: Readonly<Record<string, unknown>>;
  context?: Readonly<Record<string, unknown>>;
  "current-context"?: string;
} = {}): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: `https://${name}.example:6443`, ...cluster } }],
    users: [{ name: "admin", user }],
    contexts: [{ name, context: { cluster: name, user: "admin", ...context } }],
    "current-context": name,
    ...rest,
  });
}

export const base64 = (text: string) => Buffer.from(text, "utf8").toString("base64");

/** A self-signed certificate with its key, both PEM. */
export async function makeCertificate(
  name: string,
  { notAfter = new Date(Date.UTC(2030, 0, 1)) } = {},
): Promise<ClientCertificate> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date(Date.UTC(2020, 0, 1)),
    notAfter,
    signingAlgorithm: algorithm,
    keys,
  });
  const key = x509.PemConverter.encode(
    await crypto.subtle.exportKey("pkcs8", keys.privateKey),
    "PRIVATE KEY",
  );
  return { certificate: certificate.toString("pem"), key };
}
