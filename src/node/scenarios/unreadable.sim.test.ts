import { expect, test } from "vitest";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";

/** A disk that answers some things with an error: what cannot be read or removed delays itself, and nothing else. */

const JOURNAL = `${NODE_ROOT}/mooring/volumes`;

async function recordsOf(world: NodeWorld): Promise<readonly string[]> {
  return ((await world.machine.files.list(JOURNAL)) ?? []).map(({ name }) => name);
}

async function twoPods() {
  const world = await given({ pods: { a: { uses: ["a"] }, b: { uses: ["b"] } } });
  await world.stop();
  world.takeCalls();
  return { world, host: createFaultyNodeHost(world.machine, { clock: world.clock }) };
}

for (const [what, below] of [
  ["the volumes", "volumes"],
  ["the volumes of a plugin", "volumes/kubernetes.io~csi"],
  ["the devices", "volumeDevices"],
] as const)
  test(`${what} of a pod cannot be read at a start: the agent starts, serves the others, and keeps what was in use`, async () => {
    const { world, host } = await twoPods();
    const path = `${NODE_ROOT}/pods/${world.uidOf("a")}/${below}`;
    host.fail("files.list", { path, times: 2 });
    await world.removePod("b");

    world.start({ host });
    await world.runFor(5_000);

    expect(world.manager.statesHaveBeenSynced()).toBe(true);
    expect(world.takeCalls().filter((call) => call.startsWith("un"))).toEqual(["unpublish b b", "unstage b"]);
    expect(world.inUse()).toContain("a");
    expect(world.manager.report().strays).toEqual([`${NODE_ROOT}/pods/${world.uidOf("a")}`]);
    world.abandon();
  });

test("a record of the journal cannot be read at a start: what it speaks of stays in use, everything else goes on", async () => {
  const { world, host } = await twoPods();
  const [first = ""] = await recordsOf(world);
  host.fail("files.read", { path: `${JOURNAL}/${first}`, times: 2 });
  await world.startPod("c", { uses: ["a", "b"] });

  world.start({ host });
  await world.runFor(10_000);

  expect(world.manager.statesHaveBeenSynced()).toBe(true);
  expect(world.inUse()).toEqual(["a", "b"]);
  expect(world.takeCalls()).toEqual(expect.arrayContaining(["publish a c", "publish b c"]));
  expect(world.manager.report().strays).toEqual([`${JOURNAL}/${first}`]);
  world.abandon();
});

test("a record that cannot be removed is removed as soon as that works", async () => {
  const world = await given({ volumes: { v: {} }, started: false });
  const host = createFaultyNodeHost(world.machine, { clock: world.clock });
  world.start({ host });
  await world.startPod("web", { uses: ["v"] });
  await world.settle();
  const [record = ""] = await recordsOf(world);
  host.fail("files.removeFile", { path: `${JOURNAL}/${record}`, times: 5 });

  await world.removePod("web");
  await world.runFor(5_000);
  expect(world.inUse()).toEqual([]);
  expect(await recordsOf(world)).toEqual([record]);
  await world.runFor(300_000);

  expect(await recordsOf(world)).toEqual([]);
  world.abandon();
});

test("a record that cannot be removed, and a pod that wants the volume again: its record stays", async () => {
  const world = await given({ volumes: { v: {} }, started: false });
  const host = createFaultyNodeHost(world.machine, { clock: world.clock });
  world.start({ host });
  await world.startPod("web", { uses: ["v"] });
  await world.settle();
  const [record = ""] = await recordsOf(world);
  host.fail("files.removeFile", { path: `${JOURNAL}/${record}`, times: 3 });
  await world.removePod("web");
  await world.runFor(5_000);

  await world.startPod("next", { uses: ["v"] });
  await world.runFor(300_000);

  expect(await recordsOf(world)).toEqual([record]);
  expect(await world.machine.files.read(`${JOURNAL}/${record}`)).toContain(world.uidOf("next"));
  world.abandon();
});
