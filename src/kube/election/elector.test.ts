import { expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { LeaseServer } from "../../sim/lease-server.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import type { Lease } from "../api/lease.ts";
import type { LeaseClient } from "./elector-requests.ts";
import { createElector, type ElectorOptions } from "./elector.ts";
import type { RecordedEvent } from "../events/events.ts";

function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const server = new LeaseServer(scheduler, createSeededRandom(2));
  const process = (seed: number, options: Partial<ElectorOptions> = {}, client?: Partial<LeaseClient>) => {
    const clock = scheduler.createClock();
    const metrics = createPromMetrics();
    const events: RecordedEvent[] = [];
    const elector = createElector(
      {
        client: { ...server.clientFor(clock), ...client },
        clock,
        random: createSeededRandom(seed),
        log: silentLogger,
        metrics,
        events: { record: (event) => events.push(event) },
      },
      { namespace: "ns", name: "l", host: "host", ...options },
    );
    const stop = new AbortController();
    const world = {
      elector,
      clock,
      metrics,
      events,
      stop,
      signal: undefined as AbortSignal | undefined,
      end: "",
    };
    const stand = (drainMs = 0) => {
      const lead = async (signal: AbortSignal) => {
        world.signal = signal;
        await clock.sleep(1e9, signal).catch(() => undefined);
        await clock.sleep(drainMs);
      };
      void elector.run(lead, stop.signal).then(({ kind }) => (world.end = kind));
    };
    return Object.assign(world, { stand });
  };
  return { scheduler, server, process };
}

const holderOf = (lease: Lease | undefined) => lease?.spec?.holderIdentity;

test("one process leads, says so, and on a stop ends its work, then releases the lease", async () => {
  const { scheduler, server, process } = given();
  const a = process(1);
  a.stand(3_000);
  await scheduler.runFor(20_000);

  expect(a.elector.isLeader()).toBe(true);
  expect(a.elector.identity).toMatch(/^host_[0-9a-f-]{36}$/);
  expect(a.elector.holder()).toBe(a.elector.identity);
  expect(await a.metrics.render()).toContain('leader_election_master_status{name="l"} 1\n');
  expect(a.events).toMatchObject([
    { reason: "LeaderElection", message: `${a.elector.identity} became leader` },
  ]);

  a.stop.abort();
  await scheduler.runFor(2_900);
  expect(holderOf(server.lease)).toBe(a.elector.identity);
  await scheduler.runFor(200);

  expect(a.end).toBe("stopped");
  expect(server.lease?.spec).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1 });
  expect(await a.metrics.render()).toContain('leader_election_master_status{name="l"} 0\n');
});

test("work that takes 40 s to end keeps its lease for as long, and a waiting process begins only then", async () => {
  const { scheduler, process } = given();
  const [a, b] = [process(1), process(2)];
  a.stand(40_000);
  await scheduler.runFor(5_000);
  b.stand();
  await scheduler.runFor(5_000);

  a.stop.abort();
  await scheduler.runFor(39_000);
  expect(a.elector.isLeader()).toBe(true);
  expect(b.elector.isLeader()).toBe(false);
  await scheduler.runFor(6_000);

  expect(a.end).toBe("stopped");
  expect(b.elector.isLeader()).toBe(true);
});

test("a renewal that hangs and cannot even be aborted does not keep the work going", async () => {
  const { scheduler, process } = given();
  const a = process(1, {}, { update: () => new Promise<never>(() => undefined) });
  a.stand();
  await scheduler.runFor(9_900);
  expect(a.signal?.aborted).toBe(false);

  await scheduler.runFor(200);

  expect(a.signal?.aborted).toBe(true);
  expect(a.elector.isLeader()).toBe(false);
  await scheduler.runFor(10_000);
  expect(a.end).toBe("lost");
});

test("the work is stopped when the time is up, not when the next renewal would have been due", async () => {
  const { scheduler, server, process } = given();
  const a = process(1, { retryPeriodMs: 3_000 });
  a.stand();
  await scheduler.runFor(4_000);

  // The renewal at 3 s was the last; the tries at 6, 9 and 12 s are refused at once, the next would be at 15 s.
  server.faults = { ...server.faults, refused: 1 };
  await scheduler.runFor(8_900);
  expect(a.signal?.aborted).toBe(false);
  await scheduler.runFor(300);

  expect(a.signal?.aborted).toBe(true);
});

test("a process frozen for 20 s answers no before any of its timers has fired", async () => {
  const { scheduler, process } = given();
  const a = process(1);
  a.stand();
  await scheduler.runFor(5_000);

  a.clock.freezeFor(20_000);
  await scheduler.runFor(19_999);

  expect(a.signal?.aborted).toBe(false);
  expect(a.elector.isLeader()).toBe(false);
});

test("cut off from the server, the leader stops after 10 s and the other leads after 15 s", async () => {
  const { scheduler, server, process } = given();
  const a = process(1);
  a.stand();
  await scheduler.runFor(5_000);
  const b = process(2);
  b.stand();
  await scheduler.runFor(5_000);

  server.setPartitioned(a.clock, true);
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
  const { scheduler, server, process } = given();
  const a = process(1);
  a.stand(300_000);
  await scheduler.runFor(5_000);
  expect(a.elector.health()).toEqual({ kind: "ok" });

  server.setPartitioned(a.clock, true);
  await scheduler.runFor(30_000);
  expect(a.elector.health()).toEqual({ kind: "ok" });
  await scheduler.runFor(10_000);

  expect(a.elector.health()).toMatchObject({ kind: "stuck" });
});

test("work that fails ends the term, releases the lease and is what run() rejects with", async () => {
  const { scheduler, server, process } = given();
  const { elector, stop } = process(1);
  const failed = elector
    .run(async () => {
      throw new Error("boom");
    }, stop.signal)
    .catch((error: unknown) => error);

  await scheduler.runFor(1_000);

  expect(await failed).toMatchObject({ message: "boom" });
  expect(holderOf(server.lease)).toBe("");
});

test("a stop while the lease is being taken gives it back without beginning any work", async () => {
  const { scheduler, server, process } = given();
  server.faults = { ...server.faults, latencyMsMax: 1_000 };
  const a = process(1);
  a.stand();
  await scheduler.runUntilTrue(() => holderOf(server.lease) === a.elector.identity, { withinMs: 60_000 });

  a.stop.abort();
  await scheduler.runFor(30_000);

  expect(a.end).toBe("stopped");
  expect(a.signal).toBeUndefined();
  expect(holderOf(server.lease)).toBe("");
});

test("who leads is told to whoever asked to know, once a change", async () => {
  const { scheduler, process } = given();
  const seen: string[] = [];
  const a = process(1);
  a.stand();
  await scheduler.runFor(5_000);
  const b = process(2, { onNewLeader: (identity) => seen.push(identity) });
  b.stand();
  await scheduler.runFor(5_000);

  a.stop.abort();
  await scheduler.runFor(10_000);

  expect(seen).toEqual([a.elector.identity, b.elector.identity]);
});
