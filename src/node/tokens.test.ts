import { expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import type { TokenWanted } from "./objects.ts";
import { createTokenCache } from "./tokens.ts";

const HOUR_MS = 3_600_000;
const signal = new AbortController().signal;
const wanted = (more: Partial<TokenWanted> = {}): TokenWanted => ({
  namespace: "ns",
  serviceAccount: "sa",
  audiences: ["a"],
  expirationSeconds: 3_600,
  pod: { name: "p1", uid: "u1" },
  ...more,
});

function given({ lifeMs = HOUR_MS } = {}) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const server = { asked: 0, down: false };
  const cache = createTokenCache({ clock, random: createSeededRandom(2), log: silentLogger }, async () => {
    server.asked++;
    if (server.down) throw new Error("server is down");
    const expirationTimestamp = new Date(clock.wall().getTime() + lifeMs).toISOString();
    return { token: `t${server.asked}`, expirationTimestamp };
  });
  return { scheduler, clock, server, cache };
}

test("a token is asked for once while it is young: up to 80 % of its life, less 10 s of chance", async () => {
  const { cache, server, scheduler, clock } = given();

  await cache.token(wanted(), signal);
  const dueMs = cache.refreshAtMs("u1") ?? 0;
  await scheduler.runFor(0.8 * HOUR_MS - 10_001);
  await cache.token(wanted(), signal);
  expect(server.asked).toBe(1);
  expect(dueMs).toBeGreaterThan(0.8 * HOUR_MS - 10_000);
  expect(dueMs).toBeLessThanOrEqual(0.8 * HOUR_MS);

  await scheduler.runFor(10_001);
  expect((await cache.token(wanted(), signal)).token).toBe("t2");
  expect(cache.refreshAtMs("u1")).toBeGreaterThan(clock.now());
});

test("a token that lives for a year is replaced every day", async () => {
  const { cache, server, scheduler } = given({ lifeMs: 365 * 24 * HOUR_MS });

  await cache.token(wanted(), signal);
  await scheduler.runFor(24 * HOUR_MS + 1);
  await cache.token(wanted(), signal);

  expect(server.asked).toBe(2);
});

test("while the server is down an old token serves until it ends, and no longer", async () => {
  const { cache, server, scheduler } = given();
  await cache.token(wanted(), signal);
  server.down = true;

  await scheduler.runFor(0.9 * HOUR_MS);
  expect((await cache.token(wanted(), signal)).token).toBe("t1");

  await scheduler.runFor(0.1 * HOUR_MS);
  await expect(cache.token(wanted(), signal)).rejects.toThrow("server is down");
});

test("tokens differ by account, audience, life and pod; those of a pod that is gone are dropped", async () => {
  const { cache, server } = given();

  await cache.token(wanted(), signal);
  await cache.token(wanted({ audiences: [] }), signal);
  await cache.token(wanted({ expirationSeconds: undefined }), signal);
  await cache.token(wanted({ serviceAccount: "other" }), signal);
  await cache.token(wanted({ pod: { name: "p1", uid: "u2" } }), signal);
  expect(server.asked).toBe(5);

  cache.forget("u1");
  expect(cache.size).toBe(1);
  expect(cache.refreshAtMs("u1")).toBeUndefined();
});

test("what has expired does not stay: the cache is as large as what is alive", async () => {
  const { cache, scheduler } = given();
  for (let index = 0; index < 100; index++)
    await cache.token(wanted({ pod: { name: "p", uid: `u${index}` } }), signal);

  await scheduler.runFor(2 * HOUR_MS);
  await cache.token(wanted(), signal);

  expect(cache.size).toBe(1);
});
