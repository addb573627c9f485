import { expect, test } from "vitest";
import { createMortal } from "./mortal.testing.ts";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";

/**
 * The agent dies before or after each change it makes to its machine, while it mounts and while it takes down; another
 * starts on what is left. At no time is something mounted that `volumesInUse` does not name.
 */

async function watched(world: NodeWorld, ms: number, dead: () => boolean = () => false): Promise<void> {
  for (let at = 0; at < ms && !dead(); at += 20) {
    await world.runFor(20);
    const mounted = (await world.mountPoints()).length > 0;
    if (mounted) expect(world.inUse(), "mounted, but not in use").toEqual(["v"]);
  }
}

/** A call under way when the agent died may be so still, for 4 min since it began. */
async function watchedToTheEnd(world: NodeWorld): Promise<void> {
  await watched(world, 1_000);
  await world.runFor(239_000);
  await watched(world, 1_000);
}

async function live(world: NodeWorld, dieAt: number | undefined, when: "before" | "after") {
  const host = createFaultyNodeHost(world.machine, { clock: world.clock });
  if (dieAt !== undefined) host.dieAt(dieAt, when);
  world.start({ host });
  await watched(world, 400, () => host.isDead);
  await world.removePod("web");
  if (!host.isDead) await watched(world, 400, () => host.isDead);
  return host;
}

test("killed before and after every change of its machine: in use while mounted, and nothing is left", async () => {
  const first = await given({ pods: { web: { uses: ["v"] } }, started: false });
  const { changes } = await live(first, undefined, "before");
  expect(changes).toBeGreaterThan(8);

  for (const when of ["before", "after"] as const) {
    for (let change = 0; change < changes; change++) {
      const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
      const host = await live(world, change, when);
      expect(host.isDead, `it was to die at change ${change}`).toBe(true);
      world.abandon();

      world.start();
      await watchedToTheEnd(world);

      const where = `killed ${when} ${host.log.at(-1) ?? ""}`;
      expect(await world.mountPoints(), where).toEqual([]);
      expect(world.inUse(), where).toEqual([]);
      expect((await world.machine.files.list(`${NODE_ROOT}/mooring/volumes`)) ?? [], where).toEqual([]);
      world.abandon();
    }
  }
});

test("killed at every change while it mounts, with a pod that stays: the next agent brings it up, mounted once", async () => {
  for (let change = 0; change < 10; change++) {
    const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    host.dieAt(change);
    world.start({ host });
    await watched(world, 400, () => host.isDead);
    world.abandon();

    world.start();
    await watched(world, 3_000);

    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size, `change ${change}`).toBe(1);
    expect((await world.mountPoints()).length).toBe(2);
    expect(
      world.takeCalls().filter((call) => call.startsWith("un")),
      "a pod that runs was disturbed",
    ).toEqual([]);
    world.abandon();
  }
});

test("killed at every request and every call of a driver, mounting and taking down: nothing is left", async () => {
  const first = await given({ pods: { web: { uses: ["v"] } }, started: false });
  const whole = createMortal(first, undefined, "before");
  await liveMortal(first, whole);
  const steps = whole.log.length;
  expect(steps).toBeGreaterThan(6);
  expect(whole.log.filter((line) => line === "NodeStageVolume" || line === "NodeUnstageVolume")).toHaveLength(
    2,
  );

  for (const when of ["before", "after"] as const) {
    for (let step = 0; step < steps; step++) {
      const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
      const mortal = createMortal(world, step, when);
      await liveMortal(world, mortal);
      world.abandon();

      world.start();
      await watchedToTheEnd(world);

      const where = `killed ${when} ${mortal.log[step] ?? `step ${step}`}`;
      expect(await world.mountPoints(), where).toEqual([]);
      expect(world.inUse(), where).toEqual([]);
      world.abandon();
    }
  }
});

async function liveMortal(world: NodeWorld, mortal: ReturnType<typeof createMortal>): Promise<void> {
  mortal.start();
  await watched(world, 300, () => mortal.dead);
  await world.removePod("web");
  await watched(world, 300, () => mortal.dead);
}
