import { describe, expect, test } from "vitest";
import { createLogger, type LogFields } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import type { Client } from "../kube/client/client.ts";
import { KubeError } from "../kube/errors.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import type { TokenWanted } from "./objects.ts";
import { requestToken } from "./token-requests.ts";
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
  const server = { asked: 0, down: false, error: undefined as Error | undefined };
  const logs: LogFields[] = [];
  const log = createLogger((_level, message, fields) => void logs.push({ message, ...fields }));
  const cache = createTokenCache({ clock, random: createSeededRandom(2), log }, async () => {
    server.asked++;
    if (server.error) throw server.error;
    if (server.down) throw new Error("server is down");
    const expirationTimestamp = new Date(clock.wall().getTime() + lifeMs).toISOString();
    return { token: `t${server.asked}`, expirationTimestamp };
  });
  return { scheduler, clock, server, cache, logs };
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

describe("what is said of a token that is missing", () => {
  const TOKEN = "token of service account ns/sa, audience a, for pod ns/p1";
  for (const [what, error, words] of [
    [
      "an audience that is refused",
      new KubeError("Invalid", 'audience "a" not found in pod spec volume'),
      'TokenRequest was refused: audience "a" not found in pod spec volume',
    ],
    [
      "an account that is gone",
      new KubeError("NotFound", 'serviceaccounts "sa" not found'),
      "was refused: serviceaccounts",
    ],
    [
      "a right that is missing",
      new KubeError("Forbidden", "may not create"),
      "TokenRequest was refused: may not create",
    ],
    [
      "a server that is gone",
      new KubeError("Unreachable", "connect 10.0.0.1"),
      "the API server did not answer (Unreachable)",
    ],
  ] as const) {
    test(`${what}: at first, which token of whom, and what comes next`, async () => {
      const { cache, server } = given();
      server.error = error;

      const failure = cache.token(wanted(), signal);

      await expect(failure).rejects.toThrow(`${TOKEN} was not issued: `);
      await expect(failure).rejects.toThrow(words);
      await expect(failure).rejects.toThrow("asked for again at the next attempt to mount");
    });

    test(`${what}: later, until when the old one serves, and when it expired`, async () => {
      const { cache, server, scheduler, logs } = given();
      const { expirationTimestamp } = await cache.token(wanted(), signal);
      server.error = error;

      await scheduler.runFor(0.9 * HOUR_MS);
      await cache.token(wanted(), signal);
      expect(logs).toMatchObject([
        {
          message: "token not renewed; the old one is used until it expires",
          expires: expirationTimestamp,
          leftMs: 0.1 * HOUR_MS,
          serviceAccount: "sa",
          audiences: ["a"],
          pod: "p1",
          why: expect.stringContaining(words) as string,
        },
      ]);
      await scheduler.runFor(0.1 * HOUR_MS);
      const failure = cache.token(wanted(), signal);

      await expect(failure).rejects.toThrow(
        `${TOKEN} expired at ${expirationTimestamp} and could not be renewed: `,
      );
      await expect(failure).rejects.toThrow(words);
    });
  }

  test("a server whose clock is hours behind: the token serves, and the clocks are named", async () => {
    const { cache, logs, server } = given({ lifeMs: -2 * HOUR_MS });

    expect((await cache.token(wanted(), signal)).token).toBe("t1");
    expect((await cache.token(wanted(), signal)).token).toBe("t2");

    expect(server.asked).toBe(2);
    expect(logs[0]).toMatchObject({
      message: expect.stringContaining("compare their clocks") as string,
      pod: "p1",
      expires: expect.stringMatching(/^\d{4}-/) as string,
      now: expect.stringMatching(/^\d{4}-/) as string,
    });
  });
});

test("the time at which a token ends is told to drivers as a kubelet writes it, however the server did", async () => {
  for (const [written, told] of [
    ["2026-11-18T02:03:04Z", "2026-11-18T02:03:04Z"],
    ["2026-11-18T02:03:04.999Z", "2026-11-18T02:03:04Z"],
    ["2026-11-18T04:03:04+02:00", "2026-11-18T02:03:04Z"],
    ["soon", "soon"],
  ]) {
    const client = {
      create: async () => ({ metadata: {}, status: { token: "t", expirationTimestamp: written } }),
    } as unknown as Client;
    expect((await requestToken(client, wanted(), signal)).expirationTimestamp).toBe(told);
  }
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
