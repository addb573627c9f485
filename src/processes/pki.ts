import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { Clock } from "../base/clock.ts";
import { assert } from "../base/assert.ts";
import {
  bundleOf,
  planAuthorities,
  takeStep,
  type AuthorityStep,
  type KnownAuthority,
} from "../apiserver/auth/authority-plan.ts";
import { renewAtMs } from "../apiserver/auth/rotation.ts";
import {
  createAuthority,
  loadAuthority,
  type Authority,
  type CertificatePair,
} from "../apiserver/certificates.ts";
import type { DataDirectory } from "./data-directory.ts";
import { readAuthorities, readPair, writeAuthorities, writePair } from "./key-files.ts";

/** All certificates of one embedded cluster, kept in `pki/` of the data directory. */
export interface Pki {
  /** What clients trust: while one authority replaces another, both. */
  readonly ca: string;
  /** One by one, the one that signs first. Clients with a certificate of any of them are welcome. */
  readonly authorities: readonly KnownAuthority[];
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
  const authorities = await ensureAuthorities(deps, made);
  const authority = await loadSigner(deps, authorities);
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
  return { ca: bundleOf(authorities), authorities, server, admin, made };
}

type Deps = { readonly clock: Clock; readonly directory: DataDirectory };

/** Takes every step that is due, and keeps the outcome with one write. */
async function ensureAuthorities(deps: Deps, made: string[]): Promise<readonly KnownAuthority[]> {
  const kept = await readAuthorities(deps.directory, "ca");
  // One that cannot be read is not replaced: clients trust it, and its owner may have a backup.
  if (kept.length > 0) await loadSigner(deps, kept);
  let authorities = kept;
  if (kept.length === 0) {
    authorities = [await newAuthority(deps)];
    made.push("ca");
  }
  for (
    let step = dueStep(deps.clock, authorities);
    step !== undefined;
    step = dueStep(deps.clock, authorities)
  ) {
    authorities = await perform(deps, authorities, step);
    if (step !== "drop") made.push(step === "announce" ? "next ca" : "ca");
  }
  if (authorities !== kept) await writeAuthorities(deps.directory, "ca", authorities);
  return authorities;
}

function dueStep(clock: Clock, authorities: readonly KnownAuthority[]): AuthorityStep | undefined {
  return planAuthorities(authorities, clock.wall().getTime()).step;
}

async function perform(
  deps: Deps,
  authorities: readonly KnownAuthority[],
  step: AuthorityStep,
): Promise<readonly KnownAuthority[]> {
  switch (step) {
    case "announce":
      return takeStep(authorities, { kind: "announce", successor: await newAuthority(deps) });
    case "switch":
      return takeStep(authorities, { kind: "switch" });
    case "drop":
      return takeStep(authorities, { kind: "drop", nowMs: deps.clock.wall().getTime() });
  }
}

async function newAuthority(deps: Deps): Promise<KnownAuthority> {
  const { certificate, key } = await createAuthority(deps, {
    commonName: "mooring-ca",
    validForMs: CA_VALID_MS,
  });
  return { certificate, key };
}

async function loadSigner(deps: Deps, [signer]: readonly KnownAuthority[]): Promise<Authority> {
  assert(signer?.key !== undefined, "the first authority is the one that signs");
  return loadAuthority(deps, { certificate: signer.certificate, key: signer.key });
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
