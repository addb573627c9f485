import { describe, expect, test } from "vitest";
import { createLogger } from "../../base/log.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { createFlexDrivers } from "./flex-drivers.ts";
import { FakeFlexHost, NOT_SUPPORTED } from "./flex.testing.ts";

function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const host = new FakeFlexHost();
  const lines: string[] = [];
  const log = createLogger((level, message, { error }) =>
    lines.push(`${level} ${message}${typeof error === "string" ? ` ${error}` : ""}`),
  );
  let changes = 0;
  const deps = { host, clock: scheduler.createClock(), log };
  const drivers = createFlexDrivers(deps, { onChange: () => changes++ });
  const abort = new AbortController();
  return {
    scheduler,
    host,
    drivers,
    lines,
    abort,
    names: () => drivers.plugins().map(({ name }) => name),
    changes: () => changes,
    probe: () => drivers.probe(abort.signal),
    run: () => drivers.run(abort.signal),
  };
}

describe("drivers found in the directory", () => {
  test("are initialized once, and say whether they attach", async () => {
    const world = given();
    world.host.drivers.set("acme~disk", { version: "1" }).set("acme~nfs", { version: "1" });
    world.host.replies.set("init", `{"status":"Success","capabilities":{"attach":false}}`);

    await world.probe();
    await world.probe();

    expect(world.names()).toEqual(["acme/disk", "acme/nfs"]);
    expect(world.host.calls).toEqual([
      ["/plugins/acme~disk/disk", "init"],
      ["/plugins/acme~nfs/nfs", "init"],
    ]);
    const spec = { kind: "inline", volume: { name: "x", flexVolume: { driver: "acme/disk" } } } as const;
    expect(world.drivers.plugins()[0]?.needsAttach(spec)).toBe(false);
    expect(world.changes()).toBe(1);
  });

  test("come, change and go while running, seen within 10 s", async () => {
    const world = given();
    const running = world.run();
    await world.scheduler.runFor(100_000);
    expect(world.names()).toEqual([]);

    world.host.drivers.set("acme~disk", { version: "1" });
    await world.scheduler.runFor(10_000);
    expect(world.names()).toEqual(["acme/disk"]);

    world.host.drivers.set("acme~disk", { version: "2" });
    await world.scheduler.runFor(10_000);
    expect(world.host.verbs).toEqual(["init", "init"]);

    world.host.drivers.delete("acme~disk");
    await world.scheduler.runFor(10_000);
    expect(world.names()).toEqual([]);
    expect(world.changes()).toBe(3);

    world.abort.abort();
    await running;
  });

  test("a quiet directory runs nothing and says nothing", async () => {
    const world = given();
    world.host.drivers.set("acme~disk", { version: "1" });
    const running = world.run();

    await world.scheduler.runFor(3_600_000);

    expect(world.host.verbs).toEqual(["init"]);
    expect(world.lines).toEqual(["info flexvolume driver ready"]);
    world.abort.abort();
    await running;
  });
});

describe("a bad driver", () => {
  test("does not stop the others", async () => {
    const world = given();
    world.host.drivers.set("acme~bad", { version: "1" }).set("acme~disk", { version: "1" });
    let inits = 0;
    world.host.replies.set("init", () => (inits++ === 0 ? "garbage" : `{"status":"Success"}`));

    await world.probe();

    expect(world.names()).toEqual(["acme/disk"]);
    expect(world.lines.some((line) => line.includes("acme/bad, init, /plugins/acme~bad/bad"))).toBe(true);
  });

  test("is asked again after 10, 20, 40, ... s up to 5 min, and logged once", async () => {
    const world = given();
    world.host.drivers.set("acme~disk", { version: "1" });
    world.host.replies.set("init", `{"status":"Failure","message":"no backend"}`);
    const running = world.run();

    await world.scheduler.runFor(3_600_000);
    const failedInits = world.host.calls.length;
    expect(failedInits).toBeGreaterThan(10);
    expect(failedInits).toBeLessThan(20);
    expect(world.lines.length).toBe(1);

    world.host.replies.delete("init");
    await world.scheduler.runFor(310_000);
    expect(world.names()).toEqual(["acme/disk"]);
    world.abort.abort();
    await running;
  });

  test("is asked at once when its file changes", async () => {
    const world = given();
    world.host.drivers.set("acme~disk", { version: "1" });
    world.host.replies.set("init", "garbage");
    await world.probe();

    world.host.replies.delete("init");
    world.host.drivers.set("acme~disk", { version: "2" });
    await world.probe();

    expect(world.names()).toEqual(["acme/disk"]);
  });

  test("whose new version does not start goes on under what it said before", async () => {
    const world = given();
    world.host.drivers.set("acme~disk", { version: "1" });
    await world.probe();

    world.host.replies.set("init", NOT_SUPPORTED);
    world.host.drivers.set("acme~disk", { version: "2" });
    await world.probe();

    expect(world.names()).toEqual(["acme/disk"]);
    expect(world.changes()).toBe(1);
  });

  test("that must not be run is not, and stops serving", async () => {
    const world = given();
    world.host.drivers.set("acme~disk", { version: "1" });
    await world.probe();

    world.host.drivers.set("acme~disk", { version: "2", refused: "writable by everybody" });
    await world.probe();
    await world.probe();

    expect(world.names()).toEqual([]);
    expect(world.host.verbs).toEqual(["init"]);
    expect(world.lines).toEqual([
      "info flexvolume driver ready",
      "warn flexvolume driver unusable writable by everybody",
    ]);
  });

  test("without a vendor, or posing as a built-in plugin, is left alone", async () => {
    const world = given();
    for (const directory of ["disk", "a~b~c", "kubernetes.io~csi"])
      world.host.drivers.set(directory, { version: "1" });

    await world.probe();

    expect(world.names()).toEqual([]);
    expect(world.host.calls).toEqual([]);
  });
});

test("a directory that cannot be read is not an empty one: drivers stay, and it is said once", async () => {
  const world = given();
  world.host.drivers.set("acme~disk", { version: "1" });
  await world.probe();

  world.host.listError = new Error("EIO");
  await world.probe();
  await world.probe();

  expect(world.names()).toEqual(["acme/disk"]);
  expect(world.lines.filter((line) => line.includes("EIO")).length).toBe(1);
});

test("256 drivers at most", async () => {
  const world = given();
  for (let i = 0; i < 300; i++) world.host.drivers.set(`acme~d${i}`, { version: "1" });

  await world.probe();

  expect(world.names().length).toBe(256);
  expect(world.lines.some((line) => line.includes("300 drivers; the first 256"))).toBe(true);
});
