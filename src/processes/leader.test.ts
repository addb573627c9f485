import { describe, expect, test } from "vitest";
import { leases } from "../kube/api/lease.ts";
import { startCore } from "../sim/harness.ts";
import { createLeadership, type Leadership, type Term, type TermWork } from "./leader.ts";

const OPTIONS = {
  enabled: true,
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
  resourceName: "lease",
  resourceNamespace: "kube-system",
};

interface ReplicaOptions {
  readonly enabled?: boolean;
  readonly drainMs?: number;
  /** Instead of work that goes on until the end of its term. */
  readonly work?: TermWork;
}

/** An API server, and processes that lead by a lease on it. */
async function given() {
  const core = await startCore();
  const replica = (name: string, { enabled = true, drainMs = 0, work }: ReplicaOptions = {}) => {
    const terms: (Term & { ended: boolean })[] = [];
    let leadership!: Leadership;
    const ends: unknown[] = [];
    const process = core.add(
      name,
      async ({ clock, cluster, ...context }, signal) => {
        leadership = createLeadership(
          { ...context, clock, client: cluster.leaseClient },
          { ...OPTIONS, enabled },
        );
        const workOnAndOn = async (term: Term) => {
          const entry = { ...term, ended: false };
          terms.push(entry);
          await clock.sleep(1e9, term.signal).catch(() => undefined);
          await clock.sleep(drainMs);
          entry.ended = true;
        };
        await leadership.run(work ?? workOnAndOn, signal);
      },
      { rate: 1, restarts: false, onEnd: (error) => ends.push(error) },
    );
    process.start();
    return { process, terms, leadership, ends };
  };
  const lease = () => core.read(leases, { namespace: "kube-system", name: "lease" });
  return { scheduler: core.scheduler, replica, lease };
}

describe("terms", () => {
  test("a lost lease ends the term, and the same process leads again in a new one", async () => {
    const { scheduler, replica } = await given();
    const a = replica("a");
    await scheduler.runFor(10_000);
    a.process.setLink("cut");
    await scheduler.runFor(60_000);

    expect(a.terms.map(({ ended }) => ended)).toEqual([true]);
    expect(a.ends).toEqual([]);

    a.process.setLink("up");
    await scheduler.runFor(60_000);

    expect(a.terms.map(({ ended, mayAct }) => [ended, mayAct()])).toEqual([
      [true, false], // although this process leads again
      [false, true],
    ]);
  });

  test("work that is slow to end keeps its process from standing again, and never acts meanwhile", async () => {
    const { scheduler, replica } = await given();
    const a = replica("a", { drainMs: 120_000 });
    await scheduler.runFor(10_000);
    a.process.setLink("cut");
    await scheduler.runFor(30_000);
    a.process.setLink("up");

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
    const { scheduler, replica } = await given();
    const [a, b] = [replica("a"), replica("b")];
    await scheduler.runFor(10_000);
    const acting = () => [a, b].flatMap(({ terms }) => terms).filter(({ mayAct }) => mayAct()).length;
    expect(acting()).toBe(1);
    const [leader, other] = a.leadership.isLeader() ? [a, b] : [b, a];

    leader.process.setLink("cut");
    for (let second = 0; second < 60; second++) {
      await scheduler.runFor(1_000);
      expect(acting()).toBeLessThanOrEqual(1);
    }

    expect(other.terms.map(({ mayAct }) => mayAct())).toEqual([true]);
    expect(other.leadership.holder()).toBe(other.leadership.identity);
  });

  test("a stop ends the term before the run, and releases the lease", async () => {
    const { scheduler, replica, lease } = await given();
    const a = replica("a");
    await scheduler.runFor(10_000);

    a.process.stop();
    await scheduler.runFor(1_000);

    expect([a.terms[0]!.ended, a.ends]).toEqual([true, [undefined]]);
    expect(lease()?.spec?.holderIdentity).toBe("");
  });

  test("work that fails ends the run with its error", async () => {
    const { scheduler, replica } = await given();
    const a = replica("a", { work: () => Promise.reject(new Error("broken")) });

    await scheduler.runFor(60_000);

    expect(a.ends).toMatchObject([{ message: "broken" }]);
  });
});

describe("without election", () => {
  test("work begins at once and may act until the stop", async () => {
    const { scheduler, replica, lease } = await given();
    const a = replica("a", { enabled: false });
    await scheduler.runFor(0);

    expect(a.terms.map(({ mayAct }) => mayAct())).toEqual([true]);
    expect(lease()).toBeUndefined();

    a.process.stop();
    await scheduler.runFor(0);

    expect([a.terms[0]!.mayAct(), a.ends, a.leadership.isLeader()]).toEqual([false, [undefined], false]);
  });

  test("work that returns by itself is an error: nobody would notice", async () => {
    const { scheduler, replica } = await given();
    const a = replica("a", { enabled: false, work: async () => undefined });

    await scheduler.runFor(0);

    expect(a.ends).toMatchObject([{ message: expect.stringContaining("ended by itself") as string }]);
  });
});
