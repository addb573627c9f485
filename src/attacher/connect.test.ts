import { expect, test } from "vitest";
import { createLogger, silentLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { createMemoryChannel } from "../csi/memory-channel.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { whenConnected } from "./connect.ts";

/** A channel with nobody at its other end yet. */
function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const channel = createMemoryChannel({ clock, log: silentLogger }, []);
  channel.disconnect();
  const told: unknown[] = [];
  const log = createLogger((_level, _message, { waitedMs }) => told.push(waitedMs));
  const { signal } = new AbortController();
  const connecting = whenConnected({ channel, clock, log }, { address: "/csi/csi.sock", signal });
  const ended = connecting.then(
    () => "connected",
    (error: unknown) => (error as Error).message,
  );
  return { scheduler, channel, told, ended };
}

test("75: a socket that appears after 25 s is connected to, and the wait is told every 10 s", async () => {
  const { scheduler, channel, told, ended } = given();

  await scheduler.runFor(25_000);
  channel.connect();
  await scheduler.runFor(1);

  expect(await ended).toBe("connected");
  expect(told).toEqual([10_000, 20_000]);
});

test("75: after 30 s without a socket it gives up, and says where it looked", async () => {
  const { scheduler, ended } = given();

  await scheduler.runFor(30_001);

  expect(await ended).toBe(
    "no driver answers at --csi-address /csi/csi.sock after 30 s; start it, or give its socket",
  );
});
