import { expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import {
  CONCURRENCY_MAX,
  CONCURRENCY_MIN,
  initialConcurrency,
  LATENCY_CUT_MIN,
  observe,
} from "./concurrency.ts";
import { createLimiter } from "./limiter.ts";

test("a waiter that leaves makes room, and its place is not lost", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const limiter = createLimiter({ clock: scheduler.createClock() });
  const held = await Promise.all(Array.from({ length: LATENCY_CUT_MIN }, () => limiter.acquire()));
  const leaving = new AbortController();
  const left = limiter.acquire(leaving.signal);
  const waited = limiter.acquire();

  leaving.abort(new Error("gave up"));
  await expect(left).rejects.toThrow("gave up");
  held[0]?.done("no-sample");

  await expect(waited).resolves.toBeDefined();
});

test("the limit stays within its bounds whatever happens", () => {
  let state = initialConcurrency(0);
  for (let nowMs = 0; nowMs < 1_000; nowMs++) {
    state = observe(state, { outcome: "answered", latencyMs: 5, saturated: true }, nowMs);
  }
  expect(state.limit).toBe(CONCURRENCY_MAX);

  for (let nowMs = 1_000; nowMs < 100_000; nowMs += 200) {
    state = observe(state, { outcome: "overloaded", latencyMs: 5, saturated: true }, nowMs);
  }

  expect(state.limit).toBe(CONCURRENCY_MIN);
});

test("one burst of refusals is one sign of congestion, not forty", () => {
  let state = initialConcurrency(0);
  for (let index = 0; index < 40; index++) {
    state = observe(state, { outcome: "overloaded", latencyMs: 5, saturated: true }, 1_000);
  }

  expect(state.limit).toBe(LATENCY_CUT_MIN / 2);
});

test("what is urgent passes a long line, and the line still moves three times as fast", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const limiter = createLimiter({ clock: scheduler.createClock() });
  const [first] = await Promise.all(Array.from({ length: LATENCY_CUT_MIN }, () => limiter.acquire()));
  const order: string[] = [];
  const ask = async (what: string, urgent: boolean) => {
    const permit = await limiter.acquire(undefined, { urgent });
    order.push(what);
    permit.done("no-sample");
  };
  const asked = [
    ...Array.from({ length: 8 }, () => ask("create", false)),
    ...Array.from({ length: 3 }, () => ask("status", true)),
  ];
  await scheduler.runFor(1);

  first?.done("no-sample");
  await Promise.all(asked);

  const three = ["create", "create", "create", "status"];
  expect(order).toEqual([...three, ...three, "create", "create", "status"]);
});
