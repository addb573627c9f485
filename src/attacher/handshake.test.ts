import { expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { DriverError } from "./driver.ts";
import { EVERYTHING, FakeDriver } from "./fake-driver.testing.ts";
import { introduce } from "./handshake.ts";

function meet(change: (driver: FakeDriver) => void = () => undefined) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const driver = new FakeDriver(clock);
  change(driver);
  const signal = new AbortController().signal;
  const met = introduce({ driver, clock, log: silentLogger }, { timeoutMs: 15_000, signal });
  met.catch(() => undefined);
  return { scheduler, met };
}

test("72: it waits for a driver that is not ready, or takes its time, and goes on", async () => {
  let tries = 0;
  const { scheduler, met } = meet((driver) => {
    driver.probe = async () => {
      if (++tries === 3) throw new DriverError(4, "slow");
      return tries > 5;
    };
  });
  await scheduler.runFor(10_000);

  expect(await met).toEqual({ name: "csi.test", capabilities: EVERYTHING });
  expect(tries).toBe(6);
});

for (const [title, change] of [
  [
    "73: a probe that is refused",
    (driver: FakeDriver) => (driver.probe = () => Promise.reject(new DriverError(9, "no"))),
  ],
  [
    "74: a driver that is slow to say its name",
    (driver: FakeDriver) => (driver.pluginName = () => Promise.reject(new DriverError(4, "slow"))),
  ],
  ["an empty name", (driver: FakeDriver) => (driver.name = "")],
] as const) {
  test(`${title} ends the process`, async () => {
    const { met } = meet(change);

    await expect(met).rejects.toMatchObject({ code: "DriverUnusable" });
  });
}
