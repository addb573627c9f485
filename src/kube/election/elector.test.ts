import { expect, test } from "vitest";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { NO_FAULTS } from "../../sim/faulty-transport.ts";
import { startCore } from "../../sim/harness.ts";
import { leases, type Lease } from "../api/lease.ts";
import type { LeaseClient } from "./elector-requests.ts";
import type { Lead } from "./elector-term.ts";
import { createElector, type Elector, type ElectorOptions } from "./elector.ts";
import type { RecordedEvent } from "../events/events.ts";

const LEASE = { namespace: "kube-system", name: "l" };

interface Sketch extends Partial<ElectorOptions> {
  readonly drainMs?: number;
  /** Instead of work that goes on until it is told to end. */
  readonly lead?: Lead;
  readonly client?: Partial<LeaseClient>;
}

/** An API server, and processes that stand for one lease on it. */
async function given() {
  const core = await startCore();
  const stand = (name: string, { drainMs = 0, lead, client, ...options }: Sketch = {}) => {
    const metrics = createPromMetrics();
    const events: RecordedEvent[] = [];
    let elector!: Elector;
    const world = { metrics, events, signal: undefined as AbortSignal | undefined, end: "" };
    const process = core.add(
      name,
      async ({ clock, cluster, ...context }, stop) => {
        const deps = { ...context, clock, client: { ...cluster.leaseClient, ...client } };
        const record = (event: RecordedEvent) => void events.push(event);
        elector = createElector({ ...deps, events: { record } }, { ...LEASE, host: "host", ...options });
        const workOnAndOn = async (signal: AbortSignal) => {
          world.signal = signal;
          await clock.sleep(1e9, signal).catch(() => undefined);
          await clock.sleep(drainMs);
        };
        world.end = (await elector.run(lead ?? workOnAndOn, stop)).kind;
      },
      { rate: 1, restarts: false, metrics, onEnd: (error) => (world.end ||= String(error)) },
    );
    process.start();
    return Object.assign(world, { process, elector });
  };
  return { scheduler: core.scheduler, stand, lease: () => core.read(leases, LEASE) };
}

const holderOf = (lease: Lease | undefined) => lease?.spec?.holderIdentity;

test("one process leads, says so, and on a stop ends its work, then releases the lease", async () => {
  const { scheduler, stand, lease } = await given();
  const a = stand("a", { drainMs: 3_000 });
  await scheduler.runFor(20_000);

  expect(a.elector.isLeader()).toBe(true);
  expect(a.elector.identity).toMatch(/^host_[0-9a-f-]{36}$/);
  expect(a.elector.holder()).toBe(a.elector.identity);
  expect(await a.metrics.render()).toContain('leader_election_master_status{name="l"} 1\n');
  expect(a.events).toMatchObject([
    { reason: "LeaderElection", message: `${a.elector.identity} became leader` },
  ]);

  a.process.stop();
  await scheduler.runFor(2_900);
  expect(holderOf(lease())).toBe(a.elector.identity);
  await scheduler.runFor(200);

  expect(a.end).toBe("stopped");
  expect(lease()?.spec).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1 });
  expect(await a.metrics.render()).toContain('leader_election_master_status{name="l"} 0\n');
});

test("work that takes 40 s to end keeps its lease for as long, and a waiting process begins only then", async () => {
  const { scheduler, stand } = await given();
  const a = stand("a", { drainMs: 40_000 });
  await scheduler.runFor(5_000);
  const b = stand("b");
  await scheduler.runFor(5_000);

  a.process.stop();
  await scheduler.runFor(39_000);
  expect(a.elector.isLeader()).toBe(true);
  expect(b.elector.isLeader()).toBe(false);
  await scheduler.runFor(6_000);

  expect(a.end).toBe("stopped");
  expect(b.elector.isLeader()).toBe(true);
});

test("a renewal that hangs and cannot even be aborted does not keep the work going", async () => {
  const { scheduler, stand } = await given();
  const a = stand("a", { client: { update: () => new Promise<never>(() => undefined) } });
  await scheduler.runFor(9_900);
  expect(a.signal?.aborted).toBe(false);

  await scheduler.runFor(200);

  expect(a.signal?.aborted).toBe(true);
  expect(a.elector.isLeader()).toBe(false);
  await scheduler.runFor(10_000);
  expect(a.end).toBe("lost");
});

test("the work is stopped when the time is up, not when the next renewal would have been due", async () => {
  const { scheduler, stand } = await given();
  const a = stand("a", { retryPeriodMs: 3_000 });
  await scheduler.runFor(4_000);

  // The renewal at 3 s was the last; the tries at 6, 9 and 12 s are refused at once, the next would be at 15 s.
  a.process.setFaults({ ...NO_FAULTS, serverError: 1 });
  await scheduler.runFor(8_900);
  expect(a.signal?.aborted).toBe(false);
  await scheduler.runFor(300);

  expect(a.signal?.aborted).toBe(true);
});

test("a process frozen for 20 s answers no before any of its timers has fired", async () => {
  const { scheduler, stand } = await given();
  const a = stand("a");
  await scheduler.runFor(5_000);

  a.process.freezeFor(20_000);
  await scheduler.runFor(19_999);

  expect(a.signal?.aborted).toBe(false);
  expect(a.elector.isLeader()).toBe(false);
});

test("cut off from the server, the leader stops after 10 s and the other leads after 15 s", async () => {
  const { scheduler, stand } = await given();
  const a = stand("a");
  await scheduler.runFor(5_000);
  const b = stand("b");
  await scheduler.runFor(5_000);

  a.process.setLink("cut");
  await scheduler.runFor(10_000);
  expect(a.signal?.aborted).toBe(true);
  expect(b.elector.isLeader()).toBe(false);
  await scheduler.runFor(11_000);

  expect(a.end).toBe("lost");
  expect(b.elector.isLeader()).toBe(true);
  expect(a.events.map(({ message }) => message.split(" ").slice(1).join(" "))).toEqual([
    "became leader",
    "stopped leading",
  ]);
});

test("work that does not stop after its lease is lost makes the process unhealthy", async () => {
  const { scheduler, stand } = await given();
  const a = stand("a", { drainMs: 300_000 });
  await scheduler.runFor(5_000);
  expect(a.elector.health()).toEqual({ kind: "ok" });

  a.process.setLink("cut");
  await scheduler.runFor(30_000);
  expect(a.elector.health()).toEqual({ kind: "ok" });
  await scheduler.runFor(10_000);

  expect(a.elector.health()).toMatchObject({ kind: "stuck" });
});

test("work that fails ends the term, releases the lease and is what run() rejects with", async () => {
  const { scheduler, stand, lease } = await given();
  const a = stand("a", { lead: () => Promise.reject(new Error("boom")) });

  await scheduler.runFor(1_000);

  expect(a.end).toBe("Error: boom");
  expect(holderOf(lease())).toBe("");
});

test("a stop while the lease is being taken gives it back without beginning any work", async () => {
  const { scheduler, stand, lease } = await given();
  const a = stand("a");
  a.process.setFaults({ ...NO_FAULTS, latencyMsMax: 1_000 });
  await scheduler.runUntilTrue(() => holderOf(lease()) === a.elector.identity, { withinMs: 60_000 });

  a.process.stop();
  await scheduler.runFor(30_000);

  expect(a.end).toBe("stopped");
  expect(a.signal).toBeUndefined();
  expect(holderOf(lease())).toBe("");
});

test("who leads is told to whoever asked to know, once a change", async () => {
  const { scheduler, stand } = await given();
  const seen: string[] = [];
  const a = stand("a");
  await scheduler.runFor(5_000);
  const b = stand("b", { onNewLeader: (identity) => seen.push(identity) });
  await scheduler.runFor(5_000);

  a.process.stop();
  await scheduler.runFor(10_000);

  expect(seen).toEqual([a.elector.identity, b.elector.identity]);
});
