import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { createMemoryHost } from "../node/memory/host.ts";
import { createDriverHost } from "./driver-host.ts";
import { DRIVER_VIEW, NODE_VIEW } from "./host-calls.ts";
import { createFaultyMachine } from "./host-faults.ts";
import { SimScheduler } from "./scheduler.ts";

function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const machine = createMemoryHost({ clock });
  const driver = () => createFaultyMachine(createDriverHost(machine), { clock, view: DRIVER_VIEW });
  return {
    scheduler,
    machine,
    agent: createFaultyMachine(machine, { clock, view: NODE_VIEW }),
    driver: driver(),
    successor: driver(),
  };
}

/** What became of a call so far. */
function watch(call: Promise<unknown>): { outcome: string } {
  const seen = { outcome: "pending" };
  call.then(
    () => (seen.outcome = "done"),
    (error: unknown) => (seen.outcome = String((error as { code?: string }).code)),
  );
  return seen;
}

describe("calls of either view", () => {
  test("fail with a code, as often as asked for, where they name the path, and not once healed", async () => {
    const { agent, driver } = given();
    agent.inject({ call: "files.makeFile", code: "NoSpace", path: "/tmp/a", times: Infinity });
    driver.inject({ call: "files.makeFile", code: "NoSpace" });

    for (let again = 0; again < 2; again++)
      await expect(agent.host.files.makeFile("/tmp/a", 0o600)).rejects.toMatchObject({ code: "NoSpace" });
    await agent.host.files.makeFile("/tmp/b", 0o600);
    await expect(driver.host.files.makeFile("/tmp/c")).rejects.toMatchObject({ code: "NoSpace" });
    await driver.host.files.makeFile("/tmp/c");
    agent.heal();
    await agent.host.files.makeFile("/tmp/a", 0o600);
  });

  for (const [what, fault, outcome, isThere] of [
    ["fails at once", { code: "Failed" }, ["Failed", "Failed"], false],
    ["fails late, nothing done", { code: "TimedOut", afterMs: 1_000 }, ["pending", "TimedOut"], false],
    [
      "is done, its answer lost",
      { code: "TimedOut", afterMs: 1_000, done: true },
      ["pending", "TimedOut"],
      true,
    ],
    ["is done late", { afterMs: 1_000 }, ["pending", "done"], true],
    ["hangs until a moment", { untilMs: 1_000 }, ["pending", "done"], true],
  ] as const)
    test(`one ${what}`, async () => {
      const { driver, scheduler, machine } = given();
      driver.inject({ call: "files.makeFile", ...fault });

      const call = watch(driver.host.files.makeFile("/tmp/a"));
      await scheduler.runFor(500);
      const before = call.outcome;
      await scheduler.runFor(600);

      expect([before, call.outcome]).toEqual(outcome);
      expect((await machine.files.stat("/tmp/a")) !== undefined).toBe(isThere);
    });
});

describe("a killed process", () => {
  test("hears nothing more and changes nothing more, also of what hung when it died", async () => {
    const { driver, scheduler, machine } = given();
    driver.inject({ call: "files.makeFile", afterMs: 1_000 });
    const hung = watch(driver.host.files.makeFile("/tmp/hung"));

    driver.kill();
    const later = watch(driver.host.files.makeFile("/tmp/later"));
    await scheduler.runFor(5_000);

    expect([hung.outcome, later.outcome, driver.isDead]).toEqual(["pending", "pending", true]);
    expect(await machine.files.list("/tmp")).toEqual([]);
  });

  test("dies before or after a change, by number", async () => {
    for (const [when, isThere] of [
      ["before", false],
      ["after", true],
    ] as const) {
      const { driver, scheduler, machine } = given();
      driver.dieAt(1, when);
      await driver.host.files.makeFile("/tmp/a");

      const second = watch(driver.host.files.makeFile("/tmp/b"));
      await scheduler.runFor(1);

      expect([second.outcome, driver.log]).toEqual([
        "pending",
        ["files.makeFile /tmp/a", "files.makeFile /tmp/b"],
      ]);
      expect((await machine.files.stat("/tmp/b")) !== undefined).toBe(isThere);
    }
  });

  test("leaves its locks and its open devices to the kernel, one that it was waiting for included", async () => {
    const { driver, successor, scheduler } = given();
    const lock = (one: typeof driver) =>
      one.host.files.lock("/tmp", { shared: false, signal: new AbortController().signal });
    await successor.host.images.create("/tmp/image", 1n << 20n, { thick: false });
    const device = await successor.host.loops.attach("/tmp/image", { readonly: false });
    await lock(driver);
    const waiting = watch(lock(driver));
    await driver.host.loops.pin(device);
    await expect(successor.host.loops.detach(device)).rejects.toMatchObject({ code: "Busy" });

    driver.kill();
    const taken = watch(lock(successor));
    await scheduler.runFor(1);

    expect([taken.outcome, waiting.outcome]).toEqual(["done", "pending"]);
    expect(await successor.host.loops.list()).toEqual([]);
  });
});
