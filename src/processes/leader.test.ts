import { describe, expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { noMetrics } from "../base/metrics.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { LeaseServer } from "../sim/lease-server.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createLeadership, type Leadership, type Term } from "./leader.ts";

const OPTIONS = {
  enabled: true,
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
  resourceName: "lease",
  resourceNamespace: "kube-system",
};

function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const server = new LeaseServer(scheduler, createSeededRandom(2));
  const replica = (seed: number, { enabled = true, drainMs = 0 } = {}) => {
    const clock = scheduler.createClock();
    const random = createSeededRandom(seed);
    const deps = { clock, random, log: silentLogger, metrics: noMetrics, hostname: `host-${seed}` };
    const leadership = createLeadership(
      { ...deps, client: server.clientFor(clock) },
      { ...OPTIONS, enabled },
    );
    const terms: (Term & { ended: boolean })[] = [];
    const work = async (term: Term) => {
      const entry = { ...term, ended: false };
      terms.push(entry);
      await clock.sleep(1e9, term.signal).catch(() => undefined);
      await clock.sleep(drainMs);
      entry.ended = true;
    };
    const stop = new AbortController();
    const world = { clock, leadership, terms, stop, ended: false };
    void leadership.run(work, stop.signal).then(() => (world.ended = true));
    return world;
  };
  return { scheduler, server, replica };
}

describe("terms", () => {
  test("a lost lease ends the term, and the same process leads again in a new one", async () => {
    const { scheduler, server, replica } = given();
    const a = replica(1);
    await scheduler.runFor(10_000);
    server.setPartitioned(a.clock, true);
    await scheduler.runFor(60_000);

    expect(a.terms.map(({ ended }) => ended)).toEqual([true]);
    expect(a.ended).toBe(false);

    server.setPartitioned(a.clock, false);
    await scheduler.runFor(60_000);

    expect(a.terms.map(({ ended, mayAct }) => [ended, mayAct()])).toEqual([
      [true, false], // although this process leads again
      [false, true],
    ]);
  });

  test("work that is slow to end keeps its process from standing again, and never acts meanwhile", async () => {
    const { scheduler, server, replica } = given();
    const a = replica(1, { drainMs: 120_000 });
    await scheduler.runFor(10_000);
    server.setPartitioned(a.clock, true);
    await scheduler.runFor(30_000);
    server.setPartitioned(a.clock, false);

    for (let second = 0; second < 80; second++) {
      await scheduler.runFor(1_000);
      expect([a.terms.length, a.terms[0]!.ended, a.terms[0]!.mayAct()]).toEqual([1, false, false]);
    }
    expect(a.leadership.check.problem()).toMatch(/work goes on \d+ s after the last renewal/);

    await scheduler.runFor(60_000);
    expect(a.terms.map(({ ended }) => ended)).toEqual([true, false]);
    expect(a.leadership.check.problem()).toBeUndefined();
  });

  test("of two replicas one works; when it goes silent the other takes over, and never both", async () => {
    const { scheduler, server, replica } = given();
    const [a, b] = [replica(1), replica(2)];
    await scheduler.runFor(10_000);
    const acting = () => [a, b].flatMap(({ terms }) => terms).filter(({ mayAct }) => mayAct()).length;
    expect(acting()).toBe(1);
    const [leader, other] = a.leadership.isLeader() ? [a, b] : [b, a];

    server.setPartitioned(leader.clock, true);
    for (let second = 0; second < 60; second++) {
      await scheduler.runFor(1_000);
      expect(acting()).toBeLessThanOrEqual(1);
    }

    expect(other.terms.map(({ mayAct }) => mayAct())).toEqual([true]);
    expect(other.leadership.holder()).toBe(other.leadership.identity);
  });

  test("a stop ends the term before the run, and releases the lease", async () => {
    const { scheduler, server, replica } = given();
    const a = replica(1);
    await scheduler.runFor(10_000);

    a.stop.abort(new Error("SIGTERM"));
    await scheduler.runFor(1_000);

    expect([a.terms[0]!.ended, a.ended]).toEqual([true, true]);
    expect(server.lease?.spec?.holderIdentity).toBe("");
  });

  test("work that fails ends the run with its error", async () => {
    const { scheduler, server } = given();
    const clock = scheduler.createClock();
    const deps = {
      clock,
      random: createSeededRandom(3),
      log: silentLogger,
      metrics: noMetrics,
      hostname: "h",
    };
    const elected = createLeadership({ ...deps, client: server.clientFor(clock) }, OPTIONS);
    const failed = expect(
      elected.run(() => Promise.reject(new Error("broken")), new AbortController().signal),
    ).rejects.toThrow("broken");

    await scheduler.runFor(60_000);

    await failed;
  });
});

describe("without election", () => {
  test("work begins at once and may act until the stop", async () => {
    const { scheduler, server, replica } = given();
    const a = replica(1, { enabled: false });
    await scheduler.runFor(0);

    expect(a.terms.map(({ mayAct }) => mayAct())).toEqual([true]);
    expect(server.lease).toBeUndefined();

    a.stop.abort(new Error("SIGTERM"));
    await scheduler.runFor(0);

    expect([a.terms[0]!.mayAct(), a.ended, a.leadership.isLeader()]).toEqual([false, true, false]);
  });

  test("work that returns by itself is an error: nobody would notice", async () => {
    const { scheduler, server } = given();
    const clock = scheduler.createClock();
    const deps = {
      clock,
      random: createSeededRandom(3),
      log: silentLogger,
      metrics: noMetrics,
      hostname: "h",
    };
    const alone: Leadership = createLeadership(
      { ...deps, client: server.clientFor(clock) },
      { ...OPTIONS, enabled: false },
    );

    await expect(alone.run(async () => undefined, new AbortController().signal)).rejects.toThrow(
      "ended by itself",
    );
  });
});
