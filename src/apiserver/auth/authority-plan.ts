import { X509Certificate } from "node:crypto";

/**
 * An authority that ends is replaced without cutting anybody off. A successor is made and published first, in the
 * same bundle as the one that still signs; only when every reader had time does it begin to sign; and what the old
 * one signed is accepted until its end, after which nobody needs to know it.
 */

/** One of the authorities of a cluster, as PEM. The first of them signs. */
export interface KnownAuthority {
  readonly certificate: string;
  /** Of the one that signs and of its successor. One that has retired signs nothing, so nobody keeps its key. */
  readonly key?: string;
}

export type AuthorityStep =
  /** Make a successor; from here on it is in every bundle. */
  | "announce"
  /** The successor signs; the old one is only trusted. */
  | "switch"
  /** Forget those that have ended. */
  | "drop";

export interface AuthorityPlan {
  /** What is due now, if anything. Others may be due after it. */
  readonly step: AuthorityStep | undefined;
  /** Wall time of the next step, which has passed when one is due. */
  readonly nextAtMs: number;
}

const DAY_MS = 24 * 3_600_000;

/** A month in which to notice that the new one does not work, while the old one still could. */
const SWITCH_BEFORE_MS = 30 * DAY_MS;
/**
 * A client certificate lives a year. So whoever can still log in when the successor begins to sign got that
 * certificate in the year before, and with it a bundle that names the successor.
 */
const ANNOUNCE_BEFORE_MS = SWITCH_BEFORE_MS + 365 * DAY_MS;

/** Pure: from the certificates and the time alone, so that a start does what a running server would have done. */
export function planAuthorities(authorities: readonly KnownAuthority[], nowMs: number): AuthorityPlan {
  const steps = stepsAhead(authorities);
  const nextAtMs = Math.min(...steps.map(({ atMs }) => atMs));
  const due = steps.find(({ atMs }) => atMs === nextAtMs && atMs <= nowMs);
  return { step: due?.kind, nextAtMs };
}

function stepsAhead(
  authorities: readonly KnownAuthority[],
): readonly { kind: AuthorityStep; atMs: number }[] {
  const [signer, successor] = authorities.filter(({ key }) => key !== undefined);
  const ends = retired(authorities).map(({ certificate }) => validityOf(certificate).toMs);
  return [
    ...(signer === undefined ? [] : [renewal(signer, successor)]),
    ...ends.map((atMs) => ({ kind: "drop" as const, atMs })),
  ];
}

/** An authority that lives less than the usual ten years is announced at half its life, and leaves at the last sixth. */
function renewal(
  signer: KnownAuthority,
  successor: KnownAuthority | undefined,
): { kind: AuthorityStep; atMs: number } {
  const { fromMs, toMs } = validityOf(signer.certificate);
  const lifeMs = toMs - fromMs;
  if (successor === undefined) {
    return { kind: "announce", atMs: toMs - Math.min(ANNOUNCE_BEFORE_MS, lifeMs / 2) };
  }
  // One announced late, by a server that was off for years, still gives its readers half of what time is left.
  const announcedMs = validityOf(successor.certificate).fromMs;
  const switchMs = toMs - Math.min(SWITCH_BEFORE_MS, lifeMs / 6);
  return { kind: "switch", atMs: Math.min(toMs, Math.max(switchMs, (announcedMs + toMs) / 2)) };
}

/** The authorities after a step; `successor` is the one to announce. */
export function takeStep(
  authorities: readonly KnownAuthority[],
  step:
    { kind: "announce"; successor: KnownAuthority } | { kind: "switch" } | { kind: "drop"; nowMs: number },
): readonly KnownAuthority[] {
  const signing = authorities.filter(({ key }) => key !== undefined);
  const old = retired(authorities);
  switch (step.kind) {
    case "announce":
      return [...signing, step.successor, ...old];
    case "switch": {
      const [signer, ...successors] = signing;
      return [...successors, ...(signer === undefined ? [] : [{ certificate: signer.certificate }]), ...old];
    }
    case "drop":
      return [...signing, ...old.filter(({ certificate }) => validityOf(certificate).toMs > step.nowMs)];
  }
}

/** What readers trust: all of them, the one that signs first. */
export function bundleOf(authorities: readonly KnownAuthority[]): string {
  return authorities.map(({ certificate }) => certificate).join("");
}

/** Of the first certificate of the PEM, in wall time. */
export function validityOf(pem: string): { readonly fromMs: number; readonly toMs: number } {
  const { validFrom, validTo } = new X509Certificate(pem);
  return { fromMs: Date.parse(validFrom), toMs: Date.parse(validTo) };
}

function retired(authorities: readonly KnownAuthority[]): readonly KnownAuthority[] {
  return authorities.filter(({ key }) => key === undefined);
}
