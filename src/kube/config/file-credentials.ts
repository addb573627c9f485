import { abortable, type Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Credential, Credentials } from "../transport/access.ts";

/** As client-go. The kubelet renews a mounted token when a fifth of its life, 12 min of an hour, is left. */
const REREAD_MS = 60_000;

/** After a failed read: certificate and key are often replaced one after the other, and seconds heal it. */
const RETRY_MS = 10_000;

/** A server that rejects everything must cause one read a second, not one a request. */
const REJECTED_REREAD_MS = 1_000;

/**
 * A credential that lives in files which somebody else rotates. They are read again once a minute, and at once when
 * the server rejected what they held. A file that cannot be read, or holds nonsense, changes nothing: the last
 * good credential stays, and the log says so once.
 *
 * The answer keeps its identity until the content changes, so that a transport may compare by reference.
 */
export function createFileCredentials(
  { clock, log }: { clock: Clock; log: Logger },
  {
    files,
    initial,
    read,
  }: { files: readonly string[]; initial: Credential; read: () => Promise<Credential> },
): Credentials {
  let credential = initial;
  let nextReadMs = clock.now() + REREAD_MS;
  let reading: Promise<void> | undefined;
  let failing = false;
  let fruitlessUntilMs = -Infinity;

  async function reread(): Promise<void> {
    try {
      const next = await read();
      if (!sameCredential(next, credential)) {
        credential = next;
        fruitlessUntilMs = -Infinity;
        log.info("credential files changed", { files });
      }
      failing = false;
      nextReadMs = clock.now() + REREAD_MS;
    } catch (error) {
      if (!failing)
        log.warn("credential files are unusable; the last good credential stays", { files, error });
      failing = true;
      nextReadMs = clock.now() + RETRY_MS;
    } finally {
      reading = undefined;
    }
  }

  return {
    async current(signal) {
      if (reading === undefined && clock.now() >= nextReadMs) reading = reread();
      if (reading !== undefined) await abortable(reading, signal);
      return credential;
    },
    rejected(rejected) {
      if (rejected !== credential) return true;
      if (clock.now() < fruitlessUntilMs) return false;
      fruitlessUntilMs = clock.now() + REJECTED_REREAD_MS;
      nextReadMs = clock.now();
      return true;
    },
  };
}

function sameCredential(a: Credential, b: Credential): boolean {
  return (
    a.authorization === b.authorization &&
    a.clientCertificate?.certificate === b.clientCertificate?.certificate &&
    a.clientCertificate?.key === b.clientCertificate?.key
  );
}
