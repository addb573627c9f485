import { setMaxListeners } from "node:events";
import { createCaches } from "../attach-detach/caches.ts";
import { createAttachDetachController } from "../attach-detach/controller.ts";
import { DEFAULT_OPTIONS } from "../attach-detach/options.ts";
import { silentLogger } from "../base/log.ts";
import { noMetrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import { createClient } from "../kube/client/api-client.ts";
import { createEventRecorder } from "../kube/events/events.ts";
import { createFencedTransport } from "../kube/transport/fenced-transport.ts";
import type { Transport } from "../kube/transport/transport.ts";
import { createLeadership } from "../processes/leader.ts";
import { createFaultyTransport, type NetworkFaults } from "./faulty-transport.ts";
import type { SimClock, SimScheduler } from "./scheduler.ts";

/** The times of `mooring controller`. */
const ELECTION = {
  enabled: true,
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
  resourceName: "mooring-attach-detach-controller",
  resourceNamespace: "kube-system",
};

/**
 * One replica of `mooring controller`, put together as the real process does it: warm caches, terms under a Lease, a
 * controller a term. It has a clock that may freeze and a network of its own that may be bad.
 */
export class ControllerReplica {
  readonly clock: SimClock;
  readonly #stop = new AbortController();
  #failure: unknown;

  constructor(
    { scheduler, transport, random }: { scheduler: SimScheduler; transport: Transport; random: Random },
    { name, faults }: { name: string; faults: () => NetworkFaults },
  ) {
    const clock = scheduler.createClock({ rate: 0.995 + random.float() / 100 });
    this.clock = clock;
    setMaxListeners(0, this.#stop.signal);
    // What has left a process travels on, whatever becomes of the process.
    const wireClock = scheduler.createClock();
    const wire = (what: string) =>
      createFaultyTransport(transport, { clock, wireClock, random: random.fork(what) }, faults);
    const workWire = wire("work");
    const client = createClient({ transport: wire("wire"), clock, random: random.fork("client") });
    const leaseClient = createClient({
      transport: wire("lease"),
      clock,
      random: random.fork("lease client"),
    });
    const leaderClient = (mayWrite: () => boolean) =>
      createClient({
        transport: createFencedTransport(workWire, mayWrite),
        clock,
        random: random.fork("leader client"),
      });
    const deps = { client, clock, log: silentLogger, metrics: noMetrics };
    const events = createEventRecorder(
      { ...deps, random },
      { component: "attachdetach-controller", host: name },
    );
    const caches = createCaches({ ...deps, random: random.fork("caches") });
    const leadership = createLeadership(
      { ...deps, client: leaseClient, random: random.fork("election"), events, hostname: name },
      ELECTION,
    );
    const parts = [
      caches.run(this.#stop.signal),
      events.run(this.#stop.signal),
      leadership.run(async ({ signal, mayAct }) => {
        setMaxListeners(0, signal);
        const controller = createAttachDetachController(
          { ...deps, client: leaderClient(mayAct), caches, events, random, plugins: () => [], mayAct },
          DEFAULT_OPTIONS,
        );
        await controller.run(signal);
      }, this.#stop.signal),
    ];
    for (const part of parts)
      part.catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#failure ??= error;
      });
  }

  /** It stops without a last word: nothing it had under way is heard of again. */
  kill(): void {
    this.clock.freezeFor(1e12);
    this.#stop.abort(new Error("killed"));
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure as Error;
  }
}
