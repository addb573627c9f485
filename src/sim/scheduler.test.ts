import { expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "./scheduler.ts";

/** Ten processes that wake, yield and sleep at the same moments, and note the order. */
async function orderOf(seed: number): Promise<string> {
  const scheduler = new SimScheduler(createSeededRandom(seed));
  const clock = scheduler.createClock();
  const order: string[] = [];
  for (let process = 0; process < 10; process++) {
    void (async () => {
      for (let round = 0; round < 3; round++) {
        await clock.sleep(100);
        await Promise.resolve();
        order.push(`${process}.${round}@${scheduler.nowMs}`);
      }
    })();
  }
  await scheduler.runFor(1_000);
  return order.join(" ");
}

test("one seed, one order of everything; another seed, another order", async () => {
  const first = await orderOf(1);

  expect(await orderOf(1)).toBe(first);
  expect(await orderOf(2)).not.toBe(first);
  expect(first.split(" ")).toHaveLength(30);
});

test("six minutes take no time", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  let woken = false;
  void scheduler
    .createClock()
    .sleep(360_000)
    .then(() => (woken = true));

  await scheduler.runFor(359_999);
  expect(woken).toBe(false);
  await scheduler.runFor(1);

  expect(woken).toBe(true);
});

test("a frozen process notices nothing until it thaws; others go on", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const [frozen, other] = [scheduler.createClock(), scheduler.createClock()];
  const woken: string[] = [];
  void frozen.sleep(100).then(() => woken.push(`frozen@${scheduler.nowMs}`));
  void other.sleep(100).then(() => woken.push(`other@${scheduler.nowMs}`));

  frozen.freezeFor(5_000);
  await scheduler.runFor(10_000);

  expect(woken).toEqual(["other@100", "frozen@5000"]);
});

test("clocks may be wrong: one runs fast, one is an hour ahead on the wall", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const exact = scheduler.createClock();
  const fast = scheduler.createClock({ rate: 1.25 });
  const ahead = scheduler.createClock({ wallOffsetMs: 3_600_000 });
  let fastWokenAtMs = 0;
  void fast.sleep(1_000).then(() => (fastWokenAtMs = scheduler.nowMs));

  await scheduler.runFor(1_000);
  ahead.jumpWall(-1_000);

  expect(fast.now()).toBe(1_250);
  expect(fastWokenAtMs).toBe(800);
  expect(ahead.wall().getTime() - exact.wall().getTime()).toBe(3_599_000);
  expect(ahead.now()).toBe(exact.now());
});

test("runUntilTrue stops at the moment a condition holds, and says when it never does", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  let done = false;
  void scheduler
    .createClock()
    .sleep(300)
    .then(() => (done = true));

  expect(await scheduler.runUntilTrue(() => done, { withinMs: 200 })).toBe(false);
  expect(await scheduler.runUntilTrue(() => done, { withinMs: 200 })).toBe(true);
  expect(scheduler.nowMs).toBe(300);
});

test("whoever looks again at once does not keep the time from passing", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  let [done, looks] = [false, 0];
  // Due by less than anybody's clock can tell, and later all the same.
  clock.after(1e-9, () => (done = true));
  const look = () => {
    if (!done && looks++ < 100_000) clock.after(0, look);
  };
  look();

  await scheduler.runFor(1);

  expect(done).toBe(true);
  expect(looks).toBeLessThan(10_000);
});
