import { expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { CONCURRENCY_MIN } from "./concurrency.ts";
import { createLimiter, type LimiterOptions } from "./limiter.ts";

/**
 * A server that works on `places` requests at once, 10 ms each, and makes the rest wait in line; past
 * `lineMax` it answers 429. Clients ask as fast as the limiter lets them.
 */
async function load(
  { places, lineMax = Infinity }: { places: number; lineMax?: number },
  options: LimiterOptions = {},
) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const limiter = createLimiter({ clock }, options);
  const stats = { served: 0, refused: 0, inFlight: 0, latencyMs: 0 };
  let freeAtMs = Array.from({ length: places }, () => 0);

  async function serve(): Promise<"answered" | "overloaded"> {
    freeAtMs = freeAtMs.sort((a, b) => a - b);
    const startAtMs = Math.max(scheduler.nowMs, freeAtMs[0] ?? 0);
    if ((startAtMs - scheduler.nowMs) / 10 > lineMax) {
      stats.refused++;
      await clock.sleep(1);
      return "overloaded";
    }
    freeAtMs[0] = startAtMs + 10;
    const askedAtMs = scheduler.nowMs;
    await clock.sleep(startAtMs + 10 - scheduler.nowMs);
    stats.latencyMs = scheduler.nowMs - askedAtMs;
    stats.served++;
    return "answered";
  }

  async function client(): Promise<never> {
    for (;;) {
      const permit = await limiter.acquire();
      stats.inFlight++;
      const outcome = await serve();
      stats.inFlight--;
      permit.done(outcome);
    }
  }
  for (let index = 0; index < 400; index++) void client();

  await scheduler.runFor(20_000);
  const before = { ...stats };
  await scheduler.runFor(10_000);
  return {
    perSecond: (stats.served - before.served) / 10,
    refusedShare: (stats.refused - before.refused) / (stats.served - before.served),
    inFlight: stats.inFlight,
    latencyMs: stats.latencyMs,
  };
}

for (const places of [16, 40, 150]) {
  test(`a server with ${places} places is used in full, without a long line in front of it`, async () => {
    const { perSecond, latencyMs, inFlight } = await load({ places });

    expect(perSecond).toBeGreaterThan(places * 100 * 0.9);
    expect(latencyMs).toBeLessThan(45); // 10 ms of work; 400 clients at once on 16 places would wait 250 ms
    expect(inFlight).toBeLessThanOrEqual(Math.max(CONCURRENCY_MIN, places * 4.5));
  });
}

test("a server that refuses what it cannot take is asked for little more than it takes", async () => {
  const { perSecond, refusedShare } = await load({ places: 20, lineMax: 0.5 });

  expect(perSecond).toBeGreaterThan(20 * 100 * 0.6);
  expect(refusedShare).toBeLessThan(0.15);
});

test("--kube-api-qps is a ceiling when given", async () => {
  const { perSecond } = await load({ places: 40 }, { qps: 20, burst: 30 });

  expect(perSecond).toBeGreaterThan(19);
  expect(perSecond).toBeLessThanOrEqual(20.5);
});
