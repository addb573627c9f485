import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Fields } from "./fields.ts";
import { readPath } from "./paths.ts";
import { systemCode, type ConfigWorld } from "./world.ts";

/** A bundle of every public root takes 250 KB. */
const PEM_BYTES_MAX = 1024 * 1024;

/** PEM from `<name>-data` or from the file that `<name>` points to. */
export interface Pem {
  /** `certificate-authority`, `client-certificate` or `client-key`, with `-data` where it came from there. */
  readonly field: string;
  readonly text: string;
  /** Set where it came from a file, which may be replaced under us. */
  readonly path?: string;
}

/** Undefined if the field is not set, or cannot be read: then a problem was added. */
export async function readPem(world: ConfigWorld, fields: Fields, name: string): Promise<Pem | undefined> {
  const dataField = `${name}-data`;
  if (fields.isSet(dataField)) {
    const text = decodeBase64(fields, dataField);
    return text === undefined ? undefined : { field: dataField, text };
  }
  const path = readPath(fields, name);
  if (path === undefined) return undefined;
  try {
    return { field: name, text: await world.readFile(path, { maxBytes: PEM_BYTES_MAX }), path };
  } catch (error) {
    fields.complain(name, cannotRead(path, error));
    return undefined;
  }
}

/** The text of a PEM that has been read before, as it is now: data stays, a file is read again. */
export async function readPemAgain(world: ConfigWorld, pem: Pem): Promise<string> {
  return pem.path === undefined ? pem.text : world.readFile(pem.path, { maxBytes: PEM_BYTES_MAX });
}

export function cannotRead(path: string, error: unknown): string {
  switch (systemCode(error)) {
    case "ENOENT":
      return `there is no file ${path}; create it or correct the path`;
    case "EACCES":
    case "EPERM":
      return `the file ${path} may not be read by this user; change its owner or mode`;
    case "EISDIR":
      return `${path} is a folder; name a file`;
    case "EFBIG":
      return `the file ${path} is far too large for its purpose; check that it is the right one`;
    case undefined:
    default:
      return `the file ${path} cannot be read (${systemCode(error) ?? "unknown error"}); check it by hand`;
  }
}

function decodeBase64(fields: Fields, name: string): string | undefined {
  const encoded = fields.string(name);
  if (encoded === undefined) return undefined;
  const compact = encoded.replace(/\s+/g, "");
  if (compact.startsWith("-----BEGIN")) {
    const field = name.replace(/-data$/, "");
    fields.complain(
      name,
      `holds PEM itself; encode it in base64, or save it to a file and name that in ${field}`,
    );
    return undefined;
  }
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(compact)) {
    fields.complain(name, "is not base64; encode the PEM file with `base64 -w0`");
    return undefined;
  }
  return Buffer.from(compact, "base64").toString("utf8");
}

/** What is wrong with a PEM of certificates, or undefined. */
export function certificateProblem(text: string): string | undefined {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) {
    return text.includes("PRIVATE KEY")
      ? "holds a private key where a certificate belongs; were the two swapped?"
      : "holds no PEM certificate; it must contain a -----BEGIN CERTIFICATE----- block";
  }
  const broken = blocks.findIndex((block) => !succeeds(() => new X509Certificate(block)));
  return broken < 0
    ? undefined
    : `certificate ${broken + 1} of ${blocks.length} is damaged; copy it again from its source`;
}

/** What is wrong with a PEM of a private key, or undefined. */
export function keyProblem(text: string): string | undefined {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) {
    return text.includes("-----BEGIN CERTIFICATE")
      ? "holds a certificate where a private key belongs; were the two swapped?"
      : "holds no PEM private key; it must contain a -----BEGIN … PRIVATE KEY----- block";
  }
  if (/ENCRYPTED/.test(text))
    return "is protected by a passphrase; decrypt it first, for instance with `openssl pkey`";
  return succeeds(() => createPrivateKey(text)) ? undefined : "is damaged; copy it again from its source";
}

/** What is wrong with a certificate and a key that are fine on their own, or undefined. */
export function pairProblem(certificate: string, key: string): string | undefined {
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
    ? undefined
    : "does not belong to the client certificate; take both from the same source";
}

/** When the first certificate, the client's own, ends. */
export function certificateEnd(certificate: string): Date {
  return new Date(new X509Certificate(certificate).validTo);
}

function succeeds(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
