import { expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { pods } from "../kube/api/pod.ts";
import { createClient } from "../kube/client/api-client.ts";
import { KubeError } from "../kube/errors.ts";
import { createMemoryTransport } from "../kube/transport/memory-transport.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createFirstContact } from "./first-contact.ts";

const EMPTY = { status: 200, headers: {}, body: JSON.stringify({ items: [], metadata: {} }) };

/** A client whose server may be away, and whose connections take `dialMs` to fail. */
function given({
  away,
  dialMs = 0,
  silent = () => false,
}: {
  away: (tries: number) => boolean;
  dialMs?: number;
  silent?: (tries: number) => boolean;
}) {
  const random = createSeededRandom(1);
  const scheduler = new SimScheduler(random);
  const clock = scheduler.createClock();
  const seen = { tries: 0 };
  const inner = createMemoryTransport(async () => {
    if (silent(++seen.tries)) await clock.sleep(25_000);
    if (!away(seen.tries)) return EMPTY;
    await clock.sleep(dialMs);
    throw new KubeError("Unreachable", "connection refused");
  });
  const transport = createFirstContact({ inner, clock }, ({ detail }) => new Error(`given up: ${detail}`));
  const client = createClient({ transport, clock, random });
  /** What a list ends with, and how long that takes. */
  async function list(): Promise<readonly [string, number]> {
    const startedAtMs = scheduler.nowMs;
    let outcome: string | undefined;
    client.list(pods).then(
      () => (outcome = "listed"),
      (error: unknown) => (outcome = String(error)),
    );
    await scheduler.runUntilTrue(() => outcome !== undefined, { withinMs: 120_000 });
    return [outcome ?? "nothing", scheduler.nowMs - startedAtMs];
  }
  return { seen, list };
}

test("a server that was never there is given up after three tries in 0.4 s, and the client does not go on", async () => {
  const { seen, list } = given({ away: () => true });

  expect(await list()).toEqual(["Error: given up: connection refused", 400]);

  expect(seen.tries).toBe(3);
});

test("one that comes up meanwhile is read", async () => {
  const { list } = given({ away: (tries) => tries < 3 });

  expect(await list()).toEqual(["listed", 400]);
});

test("a connection that takes a second to fail is not tried again", async () => {
  const { seen, list } = given({ away: () => true, dialMs: 1_000 });

  expect(await list()).toEqual(["Error: given up: connection refused", 1_000]);

  expect(seen.tries).toBe(1);
});

test("one that has answered before is waited for as the client does", async () => {
  const { seen, list } = given({ away: (tries) => tries > 1 && tries < 8 });
  await list();

  const [outcome, tookMs] = await list();

  expect([outcome, seen.tries]).toEqual(["listed", 8]);
  expect(tookMs).toBeGreaterThan(5_000);
});

test("one that takes the connection and never answers is given up after ten seconds, not after the client's thirty", async () => {
  const { seen, list } = given({ away: () => false, silent: () => true });

  expect(await list()).toEqual([
    "Error: given up: it takes connections, but has answered nothing for 10s",
    10_000,
  ]);
  expect(seen.tries).toBe(1);
});

test("one that has answered once may take its time", async () => {
  const { list } = given({ away: () => false, silent: (tries) => tries > 1 });
  await list();

  expect(await list()).toEqual(["listed", 25_000]);
});
