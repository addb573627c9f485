import type { Client } from "../kube/client/client.ts";
import { createElector, type ElectorDeps } from "../kube/election/elector.ts";
import type { HealthCheck } from "./health.ts";

/**
 * Terms, one after the other, for a process of which several replicas may run.
 *
 * A lost lease ends the term, not the process: upstream exits and lists everything again, which takes a large
 * cluster a minute without a controller; here the caches go on and the next term begins where the cluster is. What
 * makes that safe is that nothing of an old term can act in a new one:
 * - a term's `mayAct` is bound to its own signal. Once that has aborted it answers no for ever, also when this very
 *   process leads again; and it reads the clock, so a process that was frozen hears no before its timers fire;
 * - the next term is stood for only after the work of the last has settled, its requests included;
 * - work is built anew each term: no memory of the old one is believed.
 * Work that does not settle keeps the process from standing again, and `/livez` says so 35 s after the last renewal.
 */
export interface Leadership {
  /** Whether this process may act at this moment. */
  isLeader(): boolean;
  /** Who leads, as last seen; undefined where nobody is elected or nobody has been seen. */
  holder(): string | undefined;
  readonly identity: string;
  readonly check: HealthCheck;
  /** Resolves when the signal aborted and the last term has ended; rejects with what the work rejected with. */
  run(work: TermWork, signal: AbortSignal): Promise<void>;
}

export type TermWork = (term: Term) => Promise<void>;

export interface Term {
  /** Aborts when the lease is lost or the process has to end. */
  readonly signal: AbortSignal;
  /** Ask right before every write. */
  readonly mayAct: () => boolean;
}

export interface LeadershipOptions {
  readonly enabled: boolean;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly resourceName: string;
  readonly resourceNamespace: string;
}

export interface LeadershipDeps extends ElectorDeps {
  /** With a limit of its own: a burst of work must not keep a renewal waiting. */
  readonly client: Pick<Client, "get" | "create" | "update">;
  readonly hostname: string;
}

export function createLeadership(deps: LeadershipDeps, options: LeadershipOptions): Leadership {
  return options.enabled ? createElected(deps, options) : createAlone(deps.hostname);
}

function createElected(
  deps: LeadershipDeps,
  { resourceName, resourceNamespace, leaseDurationMs, renewDeadlineMs, retryPeriodMs }: LeadershipOptions,
): Leadership {
  const times = { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
  const names = { name: resourceName, namespace: resourceNamespace, host: deps.hostname };
  const elector = createElector(deps, { ...times, ...names });
  return {
    isLeader: () => elector.isLeader(),
    holder: () => elector.holder(),
    identity: elector.identity,
    check: {
      name: "leader-election",
      problem() {
        const health = elector.health();
        return health.kind === "stuck" ? health.message : undefined;
      },
    },
    async run(work, signal) {
      const lead = (termSignal: AbortSignal) =>
        runTerm(work, { signal: termSignal, mayAct: () => !termSignal.aborted && elector.isLeader() });
      while (!signal.aborted) {
        const { kind } = await elector.run(lead, signal);
        if (kind === "lost") deps.log.warn("standing for election again", { lease: resourceName });
      }
    },
  };
}

/** Nobody else runs: the operator says so. */
function createAlone(hostname: string): Leadership {
  let leading = false;
  return {
    isLeader: () => leading,
    holder: () => undefined,
    identity: hostname,
    check: { name: "leader-election", problem: () => undefined },
    async run(work, signal) {
      if (signal.aborted) return;
      leading = true;
      try {
        await runTerm(work, { signal, mayAct: () => !signal.aborted });
      } finally {
        leading = false;
      }
    },
  };
}

/** Work that returns before it was told to has given up its task, and nobody would notice. */
async function runTerm(work: TermWork, term: Term): Promise<void> {
  await work(term);
  if (!term.signal.aborted) throw new Error("the work of a leader ended by itself");
}
