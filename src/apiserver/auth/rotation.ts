import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { planAuthorities, validityOf, type AuthorityStep, type KnownAuthority } from "./authority-plan.ts";

/**
 * Certificates end; a server should not. What must be renewed when is a pure question; the loop below
 * asks it, has the new ones made, and hands them to whoever uses them.
 */

/** The certificates of a cluster, as PEM. */
export interface RotatedPki {
  readonly authorities: readonly KnownAuthority[];
  readonly server: { readonly certificate: string };
  readonly admin: { readonly certificate: string };
}

type LeafName = "server" | "admin";

export interface RotationPlan {
  /** What is due for the authorities; a new one that signs needs every other certificate anew as well. */
  readonly authority: AuthorityStep | undefined;
  readonly renew: readonly LeafName[];
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
/** After one that did not: what an authority signs in its last minutes is due at once, and must not be made in a loop. */
const SETTLE_MS = 60_000;

export function planRotation(pki: RotatedPki, nowMs: number): RotationPlan {
  const { step, nextAtMs } = planAuthorities(pki.authorities, nowMs);
  const due: Readonly<Record<LeafName, number>> = {
    server: renewAtMs(pki.server.certificate),
    admin: renewAtMs(pki.admin.certificate),
  };
  const names = Object.keys(due) as LeafName[];
  return {
    authority: step,
    renew: step === "switch" ? names : names.filter((name) => due[name] <= nowMs),
    nextAtMs: Math.min(nextAtMs, ...names.map((name) => due[name])),
  };
}

/** From when on a certificate is due: at a start as in a running server, or one would wait for the other. */
export function renewAtMs(pem: string): number {
  const { fromMs, toMs } = validityOf(pem);
  return toMs - Math.min(RENEW_BEFORE_MS, (toMs - fromMs) / 3);
}

export interface RotationDeps<P extends RotatedPki> {
  readonly clock: Clock;
  readonly log: Logger;
  /** Makes and keeps what is due; gives back everything. */
  readonly renew: () => Promise<P>;
  /** Puts them to use: the server's socket, the kubeconfig, what pods trust. */
  readonly install: (pki: P) => Promise<void> | void;
}

/** Renews in time, until the signal aborts. A failure is logged and tried again in an hour. */
export async function runRotation<P extends RotatedPki>(
  deps: RotationDeps<P>,
  pki: P,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = deps;
  let current = pki;
  while (!signal.aborted) {
    const nowMs = clock.wall().getTime();
    const plan = planRotation(current, nowMs);
    let waitMs = Math.min(plan.nextAtMs - nowMs, LOOK_AGAIN_MS);
    if (plan.authority !== undefined || plan.renew.length > 0) {
      const renewed = await renewNow(deps, plan);
      current = renewed ?? current;
      waitMs = renewed === undefined ? RETRY_MS : SETTLE_MS;
    }
    await clock.sleep(waitMs, signal).catch(() => undefined);
  }
}

/** Undefined if that failed. What was made is on disk then, and the next attempt goes on from there. */
async function renewNow<P extends RotatedPki>(
  { log, renew, install }: RotationDeps<P>,
  { authority, renew: names }: RotationPlan,
): Promise<P | undefined> {
  try {
    const renewed = await renew();
    await install(renewed);
    log.info("certificates renewed", { names, ...(authority === undefined ? {} : { authority }) });
    return renewed;
  } catch (error) {
    log.error("certificates could not be renewed; trying again", {
      names,
      ...(authority === undefined ? {} : { authority }),
      retryMs: RETRY_MS,
      error,
    });
    return undefined;
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
