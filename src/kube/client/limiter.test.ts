import { expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { CONCURRENCY_MAX, CONCURRENCY_MIN, initialConcurrency, observe } from "./concurrency.ts";
import { createLimiter } from "./limiter.ts";

test("a waiter that leaves makes room, and its place is not lost", async () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const limiter = createLimiter({ clock: scheduler.createClock() });
  const held = await Promise.all(Array.from({ length: 16 }, () => limiter.acquire()));
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

  expect(state.limit).toBe(8);
});
