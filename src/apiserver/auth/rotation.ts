import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { X509Certificate } from "node:crypto";

/**
 * Certificates end; a server should not. What must be renewed when is a pure question; the loop below
 * asks it, has the new ones made, and hands them to whoever uses them.
 */

/** The certificates of a cluster, as PEM. */
export interface RotatedPki {
  readonly ca: string;
  readonly server: { readonly certificate: string };
  readonly admin: { readonly certificate: string };
}

export type CertificateName = "ca" | "server" | "admin";

export interface RotationPlan {
  /** In the order in which they must be made; a new authority needs everything else anew as well. */
  readonly renew: readonly CertificateName[];
  /** Wall time of the next renewal when nothing is due now. */
  readonly nextAtMs: number;
}

const DAY_MS = 24 * 3_600_000;
/** A month to notice that renewal fails; a third of the life of certificates that live less than three. */
const RENEW_BEFORE_MS = 30 * DAY_MS;
/** Wall clocks are set and machines sleep, so a long wait is cut into pieces of at most this. */
const LOOK_AGAIN_MS = DAY_MS;
/** After a renewal that failed, of the month that is left. */
const RETRY_MS = 3_600_000;

export function planRotation(pki: RotatedPki, nowMs: number): RotationPlan {
  const due: Readonly<Record<CertificateName, number>> = {
    ca: renewAtMs(pki.ca),
    server: renewAtMs(pki.server.certificate),
    admin: renewAtMs(pki.admin.certificate),
  };
  const names = Object.keys(due) as CertificateName[];
  const isDue = (name: CertificateName) => due[name] <= nowMs;
  return {
    renew: isDue("ca") ? names : names.filter(isDue),
    nextAtMs: Math.min(...names.map((name) => due[name])),
  };
}

/** From when on a certificate is due: at a start as in a running server, or one would wait for the other. */
export function renewAtMs(pem: string): number {
  const { validFrom, validTo } = new X509Certificate(pem);
  const [fromMs, toMs] = [Date.parse(validFrom), Date.parse(validTo)];
  return toMs - Math.min(RENEW_BEFORE_MS, (toMs - fromMs) / 3);
}

export interface RotationDeps<P extends RotatedPki> {
  readonly clock: Clock;
  readonly log: Logger;
  /** Makes and keeps what the plan names; gives back everything. */
  readonly renew: (names: readonly CertificateName[]) => Promise<P>;
  /** Puts them to use: the server's socket, the kubeconfig. */
  readonly install: (pki: P) => Promise<void> | void;
}

/** Renews in time, until the signal aborts. A failure is logged and tried again in an hour. */
export async function runRotation<P extends RotatedPki>(
  { clock, log, renew, install }: RotationDeps<P>,
  pki: P,
  signal: AbortSignal,
): Promise<void> {
  let current = pki;
  while (!signal.aborted) {
    const plan = planRotation(current, clock.wall().getTime());
    let waitMs = Math.min(plan.nextAtMs - clock.wall().getTime(), LOOK_AGAIN_MS);
    if (plan.renew.length > 0) {
      waitMs = RETRY_MS;
      try {
        const renewed = await renew(plan.renew);
        await install(renewed);
        current = renewed;
        log.info("certificates renewed", { names: plan.renew });
      } catch (error) {
        log.error("certificates could not be renewed; trying again", {
          names: plan.renew,
          retryMs: RETRY_MS,
          error,
        });
      }
    }
    await clock.sleep(waitMs, signal).catch(() => undefined);
  }
}

/** The part of a TLS or HTTP/2 server that takes a new certificate while it runs. */
export interface SecureServer {
  setSecureContext(options: SecureContextParts): void;
}

interface SecureContextParts {
  readonly cert: string;
  readonly key: string;
  readonly ca: string[];
  readonly minVersion: "TLSv1.2";
}

/**
 * From here on new connections see the new certificate; open ones go on with the old one. `clientCas` are
 * all authorities whose clients are still welcome: while an authority is replaced, both.
 */
export function installServerCertificate(
  server: SecureServer,
  { certificate, key, clientCas }: { certificate: string; key: string; clientCas: readonly string[] },
): void {
  server.setSecureContext({ cert: certificate, key, ca: [...clientCas], minVersion: "TLSv1.2" });
}
