import { expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { createPromMetrics } from "../../base/prom-metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { LeaseServer } from "../../sim/lease-server.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { createElector } from "./elector.ts";
import { createLeaseNotes } from "./lease-notes.ts";

function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const server = new LeaseServer(scheduler, createSeededRandom(2));
  const process = (seed: number) => {
    const clock = scheduler.createClock();
    const notes = createLeaseNotes(server.clientFor(clock), { namespace: "ns", name: "l" });
    const deps = { client: notes.client, clock, random: createSeededRandom(seed), log: silentLogger };
    const elector = createElector(
      { ...deps, metrics: createPromMetrics() },
      { namespace: "ns", name: "l", host: `host-${seed}` },
    );
    const stop = new AbortController();
    const lead = (signal: AbortSignal) => clock.sleep(1e9, signal).catch(() => undefined);
    const stand = () => void elector.run(lead, stop.signal);
    const read = async () => {
      const note = notes.read(new AbortController().signal);
      await scheduler.runFor(1_000);
      return note;
    };
    return { notes, elector, stop, stand, read };
  };
  return { scheduler, server, process };
}

test("renewals carry what the leader says at the time; silence leaves what was said", async () => {
  const { scheduler, process } = given();
  const a = process(1);
  expect(await a.read()).toBeUndefined();
  a.stand();
  await scheduler.runFor(5_000);
  let said: string | undefined = "one";
  a.notes.carry(() => said);
  await scheduler.runFor(5_000);
  expect(await a.read()).toBe("one");

  said = "two";
  await scheduler.runFor(5_000);
  expect(await a.read()).toBe("two");
  said = undefined;
  await scheduler.runFor(5_000);
  expect(await a.read()).toBe("two");
});

test("the note outlives a release and a take-over, until the next leader has one", async () => {
  const { scheduler, process } = given();
  const [a, b] = [process(1), process(2)];
  a.stand();
  await scheduler.runFor(5_000);
  const end = a.notes.carry(() => "from a");
  await scheduler.runFor(5_000);
  end();
  a.stop.abort(new Error("over"));
  b.stand();
  await scheduler.runFor(30_000);

  expect(b.elector.isLeader()).toBe(true);
  expect(await b.read()).toBe("from a");
  b.notes.carry(() => "from b");
  await scheduler.runFor(5_000);
  expect(await b.read()).toBe("from b");
});

test("who does not lead writes no note", async () => {
  const { scheduler, process } = given();
  const [a, b] = [process(1), process(2)];
  a.stand();
  await scheduler.runFor(5_000);
  b.stand();
  b.notes.carry(() => "from b");
  await scheduler.runFor(60_000);

  expect(a.elector.isLeader()).toBe(true);
  expect(await a.read()).toBeUndefined();
});
