import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { Clock } from "../base/clock.ts";
import { renewAtMs } from "../apiserver/auth/rotation.ts";
import {
  createAuthority,
  loadAuthority,
  type Authority,
  type CertificatePair,
} from "../apiserver/certificates.ts";
import type { DataDirectory } from "./data-directory.ts";

/** All certificates of one embedded cluster, kept in `pki/` of the data directory. */
export interface Pki {
  readonly ca: string;
  readonly server: CertificatePair;
  readonly admin: CertificatePair;
  /** Those made in this start; empty when all were still good. */
  readonly made: readonly string[];
}

const DAY_MS = 24 * 3_600_000;
const CA_VALID_MS = 3_650 * DAY_MS;
const LEAF_VALID_MS = 365 * DAY_MS;

/** Loads what is there and not yet due, makes the rest. `host` is where the server listens. */
export async function ensurePki(
  deps: { clock: Clock; directory: DataDirectory },
  { host, hostname }: { host: string; hostname: string },
): Promise<Pki> {
  const made: string[] = [];
  const authority = await ensureAuthority(deps, made);
  const { names, addresses } = serverNames(host, hostname);
  const server = await ensureLeaf(deps, authority, made, {
    name: "apiserver",
    isGood: (certificate) => covers(certificate, names, addresses),
    issue: () => authority.issueServer({ names, addresses, validForMs: LEAF_VALID_MS }),
  });
  const admin = await ensureLeaf(deps, authority, made, {
    name: "admin",
    isGood: () => true,
    issue: () =>
      authority.issueClient({ user: "admin", groups: ["system:masters"], validForMs: LEAF_VALID_MS }),
  });
  return { ca: authority.certificate, server, admin, made };
}

type Deps = { readonly clock: Clock; readonly directory: DataDirectory };

async function ensureAuthority(deps: Deps, made: string[]): Promise<Authority> {
  const kept = await readPair(deps.directory, "ca");
  // An authority that cannot be read is not replaced: clients trust it, and its owner may have a backup.
  if (kept !== undefined) {
    const authority = await loadAuthority(deps, kept);
    if (!isDue(deps.clock, kept.certificate)) return authority;
  }
  const authority = await createAuthority(deps, { commonName: "mooring-ca", validForMs: CA_VALID_MS });
  await writePair(deps.directory, "ca", authority);
  made.push("ca");
  return authority;
}

async function ensureLeaf(
  deps: Deps,
  authority: Authority,
  made: string[],
  leaf: {
    name: string;
    isGood: (certificate: X509Certificate) => boolean;
    issue: () => Promise<CertificatePair>;
  },
): Promise<CertificatePair> {
  const kept = await readPair(deps.directory, leaf.name);
  if (kept !== undefined && isUsable(deps.clock, authority, kept, leaf.isGood)) return kept;
  const pair = await leaf.issue();
  await writePair(deps.directory, leaf.name, pair);
  made.push(leaf.name);
  return pair;
}

/** A certificate we can make again at any time is simply replaced when anything about it is wrong. */
function isUsable(
  clock: Clock,
  authority: Authority,
  { certificate, key }: CertificatePair,
  isGood: (certificate: X509Certificate) => boolean,
): boolean {
  try {
    const parsed = new X509Certificate(certificate);
    return (
      !isDue(clock, certificate) &&
      parsed.verify(new X509Certificate(authority.certificate).publicKey) &&
      parsed.checkPrivateKey(createPrivateKey(key)) &&
      isGood(parsed)
    );
  } catch {
    return false;
  }
}

function isDue(clock: Clock, certificate: string): boolean {
  return renewAtMs(certificate) <= clock.wall().getTime();
}

function covers(
  certificate: X509Certificate,
  names: readonly string[],
  addresses: readonly string[],
): boolean {
  return (
    names.every((name) => certificate.checkHost(name) !== undefined) &&
    addresses.every((address) => certificate.checkIP(address) !== undefined)
  );
}

/** All names a client on this machine, or a pod that thinks it is in a cluster, may use. */
function serverNames(host: string, hostname: string): { names: string[]; addresses: string[] } {
  const names = new Set([
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    hostname,
  ]);
  const addresses = new Set(["127.0.0.1", "::1"]);
  if (isIP(host) === 0) names.add(host);
  else if (host !== "0.0.0.0" && host !== "::") addresses.add(host);
  return { names: [...names].filter((name) => name !== ""), addresses: [...addresses] };
}

async function readPair(directory: DataDirectory, name: string): Promise<CertificatePair | undefined> {
  const certificate = await directory.read(`pki/${name}.crt`);
  const key = await directory.read(`pki/${name}.key`);
  return certificate === undefined || key === undefined ? undefined : { certificate, key };
}

/** The key first: a certificate without its key would be kept and never work. */
async function writePair(
  directory: DataDirectory,
  name: string,
  { certificate, key }: CertificatePair,
): Promise<void> {
  await directory.write(`pki/${name}.key`, key);
  await directory.write(`pki/${name}.crt`, certificate);
}
