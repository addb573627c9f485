import { assert } from "../../base/assert.ts";
import type { Metrics } from "../../base/metrics.ts";
import { uuid } from "../../base/random.ts";
import { createTerm, type ElectionEnd, type Lead, type Term, type TermDeps } from "./elector-term.ts";
import { createElectionConfig, type ElectionTimes } from "./leader-election.ts";

/**
 * Leads while it holds a Lease, and certainly not longer (`leader-election.ts` says why).
 *
 * Callers may rely on:
 * - the signal given to `lead` aborts before anybody else can take the lease: after the renew deadline,
 *   by itself, even while a renewal hangs. Work has lease duration minus renew deadline (5 s) to end;
 * - `isLeader()` reads the clock when asked: a process that was frozen for 20 s answers no before any of
 *   its timers has fired. Ask it right before an act that must not happen twice;
 * - the lease is renewed until `lead` has settled, even after a stop, and released only then.
 *
 * Callers may not rely on: a request that was already on the wire when the lease was lost. Whatever it
 * does must bear being repeated by the next leader.
 */
export interface Elector {
  /** `<host>_<uuid>`. */
  readonly identity: string;
  isLeader(): boolean;
  /** Who holds the lease, as last seen; "" for nobody, undefined before the first look. */
  holder(): string | undefined;
  /** For `/healthz/leader-election`. */
  health(): LeaderHealth;
  /**
   * Waits to lead, then leads once. Resolves when `lead` has settled and the lease is released: `stopped`
   * if the signal aborted or `lead` returned by itself, `lost` if the lease was not kept. Rejects with
   * what `lead` rejected with.
   */
  run(lead: Lead, signal: AbortSignal): Promise<ElectionEnd>;
}

export type LeaderHealth = { readonly kind: "ok" } | { readonly kind: "stuck"; readonly message: string };

export interface ElectorDeps extends Omit<TermDeps, "leaderMetrics" | "observe"> {
  readonly metrics: Metrics;
}

export interface ElectorOptions extends ElectionTimes {
  readonly namespace: string;
  readonly name: string;
  /** Who we are to people; made unique by a UUID, because two processes with one identity would both lead. */
  readonly host: string;
  /** Put on the Lease when this process becomes leader. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly onNewLeader?: (identity: string) => void;
}

/** How long work may outlive its lease before it is called stuck; upstream's tolerance. */
const STUCK_AFTER_LEASE_MS = 20_000;

export function createElector(deps: ElectorDeps, { host, onNewLeader, ...options }: ElectorOptions): Elector {
  const identity = `${host}_${uuid(deps.random)}`;
  const config = createElectionConfig({ ...options, identity });
  let term: Term | undefined;
  let holder: string | undefined;

  function observe(identity: string): void {
    if (identity === holder) return;
    holder = identity;
    deps.log.info("leader observed", { lease: config.name, holder });
    if (identity !== "") onNewLeader?.(identity);
  }

  const leaderMetrics = createLeaderMetrics(deps.metrics, config.name);

  return {
    identity,
    isLeader: () => term?.isLeader() ?? false,
    holder: () => holder,
    health() {
      const silentMs = term?.workedWithoutRenewalMs() ?? 0;
      if (silentMs <= config.leaseSeconds * 1_000 + STUCK_AFTER_LEASE_MS) return { kind: "ok" };
      return {
        kind: "stuck",
        message: `work goes on ${Math.round(silentMs / 1_000)} s after the last renewal`,
      };
    },
    async run(lead, signal) {
      assert(term === undefined, `elector ${identity}: run() while it runs already`);
      term = createTerm({ ...deps, leaderMetrics, observe }, config, lead);
      try {
        return await term.run(signal);
      } finally {
        term = undefined;
      }
    },
  };
}

function createLeaderMetrics(metrics: Metrics, name: string): TermDeps["leaderMetrics"] {
  const status = metrics.gauge({
    name: "leader_election_master_status",
    help: "1 while this process leads, 0 while it does not.",
    labels: ["name"],
  });
  const slow = metrics.counter({
    name: "leader_election_slowpath_total",
    help: "Renewals that had to read the lease first.",
    labels: ["name"],
  });
  status.set(0, { name });
  return {
    leading: (yes) => status.set(yes ? 1 : 0, { name }),
    slowPath: () => slow.inc({ name }),
  };
}
