import type { KnownAuthority } from "../apiserver/auth/authority-plan.ts";
import type { CertificatePair } from "../apiserver/certificates.ts";
import type { DataDirectory } from "./data-directory.ts";

/**
 * Keys and their certificates in `pki/`. `<name>.key` holds both, so that one rename replaces both and a stop at any
 * moment leaves the old pair or the new one. `<name>.crt` is a copy for people and programs that want the certificate
 * alone; it is written last, and put right when a stop came in between.
 *
 * A `.key` without a certificate is somebody else's, or from a version that kept the two apart: then `.crt` counts.
 */

/** Undefined if there is none. Whether the two belong together is for the caller to find out. */
export async function readPair(directory: DataDirectory, name: string): Promise<CertificatePair | undefined> {
  const { entries, key, certificates } = await readFiles(directory, name);
  const [first] = entries;
  if (first?.key !== undefined) return { certificate: first.certificate, key: first.key };
  return key === undefined || certificates === undefined ? undefined : { certificate: certificates, key };
}

export async function writePair(
  directory: DataDirectory,
  name: string,
  { certificate, key }: CertificatePair,
): Promise<void> {
  await writeFiles(directory, name, [{ certificate, key }]);
}

/**
 * The authorities, the one that signs first; empty if there are none. A certificate whose key is lost comes with an
 * empty key, which nobody accepts: clients trust it, so it is not for us to replace.
 */
export async function readAuthorities(
  directory: DataDirectory,
  name: string,
): Promise<readonly KnownAuthority[]> {
  const { entries, key, certificates } = await readFiles(directory, name);
  if (entries[0]?.key !== undefined) return entries;
  if (certificates === undefined) return [];
  const [signer = certificates, ...trusted] = blocksOf(certificates).map(({ text }) => text);
  return [{ certificate: signer, key: key ?? "" }, ...trusted.map((certificate) => ({ certificate }))];
}

export async function writeAuthorities(
  directory: DataDirectory,
  name: string,
  authorities: readonly KnownAuthority[],
): Promise<void> {
  await writeFiles(directory, name, authorities);
}

interface Files {
  /** What the key file holds, in its order. */
  readonly entries: readonly KnownAuthority[];
  /** Both as they are on disk. */
  readonly key: string | undefined;
  readonly certificates: string | undefined;
}

async function readFiles(directory: DataDirectory, name: string): Promise<Files> {
  const certificates = await directory.read(`pki/${name}.crt`);
  const key = await directory.read(`pki/${name}.key`);
  const entries = parseEntries(key ?? "");
  const isOurs = entries[0]?.key !== undefined;
  if (isOurs && certificates !== certificatesOf(entries)) {
    await directory.write(`pki/${name}.crt`, certificatesOf(entries));
  }
  return { entries, key, certificates };
}

async function writeFiles(
  directory: DataDirectory,
  name: string,
  entries: readonly KnownAuthority[],
): Promise<void> {
  const text = entries.map(({ certificate, key = "" }) => key + certificate).join("");
  await directory.write(`pki/${name}.key`, text);
  await directory.write(`pki/${name}.crt`, certificatesOf(entries));
}

function certificatesOf(entries: readonly KnownAuthority[]): string {
  return entries.map(({ certificate }) => certificate).join("");
}

/** A key stands in front of its certificate; a certificate without one is only trusted. */
function parseEntries(text: string): readonly KnownAuthority[] {
  const entries: KnownAuthority[] = [];
  let key: string | undefined;
  for (const { label, text: block } of blocksOf(text)) {
    if (label !== "CERTIFICATE") {
      key = block;
      continue;
    }
    entries.push({ certificate: block, ...(key === undefined ? {} : { key }) });
    key = undefined;
  }
  return entries;
}

const PEM_BLOCK = /-----BEGIN ([A-Z ]+)-----[\s\S]*?-----END \1-----/g;

function blocksOf(pem: string): readonly { label: string; text: string }[] {
  return Array.from(pem.matchAll(PEM_BLOCK), ([block, label = ""]) => ({ label, text: `${block}\n` }));
}
