import { createPrivateKey, webcrypto, X509Certificate } from "node:crypto";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { ClientCertificate } from "../kube/transport/access.ts";
import { KubeError } from "../kube/errors.ts";

/**
 * A certificate authority for one embedded cluster: server certificates that kubectl accepts, client
 * certificates whose subject is the user (`CN`) and its groups (`O`), as Kubernetes reads them.
 *
 * Keys are ECDSA P-256 and come from WebCrypto, never from the seeded `Random`: a seed replays, and a
 * key that can be replayed can be guessed. So certificates differ from run to run while everything else
 * of a simulation repeats.
 */
export interface Authority extends CertificatePair {
  issueServer(options: ServerCertificateOptions): Promise<CertificatePair>;
  issueClient(options: ClientCertificateOptions): Promise<CertificatePair>;
}

/** Both PEM; the key is PKCS #8. */
export type CertificatePair = ClientCertificate;

export interface AuthorityOptions {
  readonly commonName: string;
  readonly validForMs: number;
}

export interface ServerCertificateOptions {
  /** DNS names, at least one of these or of the addresses; the first is also the subject. */
  readonly names: readonly string[];
  /** IPv4 and IPv6 addresses, without brackets. */
  readonly addresses: readonly string[];
  readonly validForMs: number;
}

export interface ClientCertificateOptions {
  readonly user: string;
  readonly groups: readonly string[];
  readonly validForMs: number;
}

/** Certificates start this long before they are made, so that a peer whose clock is behind takes them. */
const BACKDATED_MS = 5 * 60_000;

const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" };
const SIGNING_ALGORITHM = { name: "ECDSA", hash: "SHA-256" };

export async function createAuthority(
  deps: { clock: Clock },
  { commonName, validForMs }: AuthorityOptions,
): Promise<Authority> {
  const x509 = await loadX509();
  const keys = await generateKeys();
  const nowMs = deps.clock.wall().getTime();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: randomSerial(),
    name: [{ CN: [commonName] }],
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(nowMs + validForMs),
    signingAlgorithm: SIGNING_ALGORITHM,
    keys,
    extensions: [
      // Path length 0: it signs servers and clients, never another authority.
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return createIssuer(deps, x509, { certificate, keys, pair: await toPair(x509, certificate, keys) });
}

/** The authority of an earlier run, from its PEM files. */
export async function loadAuthority(deps: { clock: Clock }, pair: CertificatePair): Promise<Authority> {
  assertAuthorityPair(pair);
  const x509 = await loadX509();
  const certificate = new x509.X509Certificate(pair.certificate);
  const pkcs8 = createPrivateKey(pair.key).export({ type: "pkcs8", format: "der" });
  const keys = {
    privateKey: await webcrypto.subtle.importKey("pkcs8", pkcs8, KEY_ALGORITHM, true, ["sign"]),
    publicKey: await webcrypto.subtle.importKey("spki", certificate.publicKey.rawData, KEY_ALGORITHM, true, [
      "verify",
    ]),
  };
  return createIssuer(deps, x509, { certificate, keys, pair });
}

/** When the first certificate of the PEM ends, in wall time. */
export function expiresAtMs(pem: string): number {
  return Date.parse(new X509Certificate(pem).validTo);
}

/** Loaded when first needed: parsing the ASN.1 schemas takes longer than most commands run. */
async function loadX509() {
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

type X509 = Awaited<ReturnType<typeof loadX509>>;

interface Issuer {
  readonly certificate: InstanceType<X509["X509Certificate"]>;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly pair: CertificatePair;
}

interface Leaf {
  readonly subject: { CN?: string[]; O?: string[] }[];
  readonly usage: "serverAuth" | "clientAuth";
  readonly names?: readonly { type: "dns" | "ip"; value: string }[];
  readonly validForMs: number;
}

function createIssuer(deps: { clock: Clock }, x509: X509, issuer: Issuer): Authority {
  return {
    ...issuer.pair,
    issueServer({ names, addresses, validForMs }) {
      const [first] = [...names, ...addresses];
      assert(first !== undefined, "a server certificate needs a name or an address to be recognised by");
      return issue(deps, x509, issuer, {
        subject: [{ CN: [first] }],
        usage: "serverAuth",
        names: [
          ...names.map((value) => ({ type: "dns" as const, value })),
          ...addresses.map((value) => ({ type: "ip" as const, value })),
        ],
        validForMs,
      });
    },
    issueClient: ({ user, groups, validForMs }) =>
      issue(deps, x509, issuer, {
        // One attribute a group, each in a set of its own: what Go and OpenSSL both read back in order.
        subject: [...groups.map((group) => ({ O: [group] })), { CN: [user] }],
        usage: "clientAuth",
        validForMs,
      }),
  };
}

async function issue(
  { clock }: { clock: Clock },
  x509: X509,
  issuer: Issuer,
  { subject, usage, names, validForMs }: Leaf,
): Promise<CertificatePair> {
  const keys = await generateKeys();
  const nowMs = clock.wall().getTime();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: randomSerial(),
    subject,
    issuer: issuer.certificate.subjectName,
    notBefore: new Date(nowMs - BACKDATED_MS),
    // Nobody accepts a certificate after its authority has ended, so it should not claim to last longer.
    notAfter: new Date(Math.min(nowMs + validForMs, issuer.certificate.notAfter.getTime())),
    signingAlgorithm: SIGNING_ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: issuer.keys.privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage[usage]]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.keys.publicKey),
      ...(names === undefined ? [] : [new x509.SubjectAlternativeNameExtension([...names])]),
    ],
  });
  return toPair(x509, certificate, keys);
}

async function toPair(
  x509: X509,
  certificate: Issuer["certificate"],
  keys: webcrypto.CryptoKeyPair,
): Promise<CertificatePair> {
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    certificate: `${certificate.toString("pem")}\n`,
    key: `${x509.PemConverter.encode(pkcs8, x509.PemConverter.PrivateKeyTag)}\n`,
  };
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
}

/** 126 random bits behind a fixed 01: positive, never zero, within the 20 bytes that RFC 5280 (4.1.2.2) allows. */
function randomSerial(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return Buffer.from(bytes).toString("hex");
}

function assertAuthorityPair({ certificate, key }: CertificatePair): void {
  const unusable = (what: string, cause?: unknown) =>
    new KubeError(
      "BadConfig",
      `load certificate authority: ${what}; restore both files from a backup or remove both`,
      {
        cause,
      },
    );
  let parsed: X509Certificate;
  let privateKey: ReturnType<typeof createPrivateKey>;
  try {
    parsed = new X509Certificate(certificate);
  } catch (error) {
    throw unusable("the certificate is not PEM", error);
  }
  try {
    privateKey = createPrivateKey(key);
  } catch (error) {
    throw unusable("the key is not an unencrypted PEM key", error);
  }
  if (!parsed.ca) throw unusable("the certificate may not sign others");
  if (!parsed.checkPrivateKey(privateKey)) throw unusable("the key does not belong to the certificate");
}
