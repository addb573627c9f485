import { expect, test } from "vitest";
import { startCore } from "../../sim/harness.ts";
import { createElector, type Elector } from "./elector.ts";
import { createLeaseNotes } from "./lease-notes.ts";

const LEASE = { namespace: "kube-system", name: "l" };

/** An API server, and processes that stand for one lease, with notes on it. */
async function given() {
  const core = await startCore();
  const stand = (name: string) => {
    let elector!: Elector;
    let notes!: ReturnType<typeof createLeaseNotes>;
    const process = core.add(
      name,
      async ({ clock, cluster, ...context }, stop) => {
        notes = createLeaseNotes(cluster.leaseClient, LEASE);
        elector = createElector({ ...context, clock, client: notes.client }, { ...LEASE, host: name });
        await elector.run((signal) => clock.sleep(1e9, signal).catch(() => undefined), stop);
      },
      { rate: 1, restarts: false },
    );
    process.start();
    return { process, notes, elector };
  };
  /** What the next leader would read. */
  const read = () => createLeaseNotes(core.client, LEASE).read(new AbortController().signal);
  return { scheduler: core.scheduler, stand, read };
}

test("renewals carry what the leader says at the time; silence leaves what was said", async () => {
  const { scheduler, stand, read } = await given();
  expect(await read()).toBeUndefined();
  const a = stand("a");
  await scheduler.runFor(5_000);
  let said: string | undefined = "one";
  a.notes.carry(() => said);
  await scheduler.runFor(5_000);
  expect(await read()).toBe("one");

  said = "two";
  await scheduler.runFor(5_000);
  expect(await read()).toBe("two");
  said = undefined;
  await scheduler.runFor(5_000);
  expect(await read()).toBe("two");
});

test("the note outlives a release and a take-over, until the next leader has one", async () => {
  const { scheduler, stand, read } = await given();
  const a = stand("a");
  await scheduler.runFor(5_000);
  const end = a.notes.carry(() => "from a");
  await scheduler.runFor(5_000);
  end();
  a.process.stop();
  const b = stand("b");
  await scheduler.runFor(30_000);

  expect(b.elector.isLeader()).toBe(true);
  expect(await read()).toBe("from a");
  b.notes.carry(() => "from b");
  await scheduler.runFor(5_000);
  expect(await read()).toBe("from b");
});

test("who does not lead writes no note", async () => {
  const { scheduler, stand, read } = await given();
  const a = stand("a");
  await scheduler.runFor(5_000);
  const b = stand("b");
  b.notes.carry(() => "from b");
  await scheduler.runFor(60_000);

  expect(a.elector.isLeader()).toBe(true);
  expect(await read()).toBeUndefined();
});
