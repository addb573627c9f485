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

for (const [what, goes, times] of [
  ["and the pod is gone", "before", 8],
  ["and the pod goes later", "after", 8],
  ["and the pod goes once it can be read", "after", 2],
] as const)
  test(`the volumes of a pod cannot be read at a start, ${what}: once they can, they are taken down without a restart`, async () => {
    const { world, host } = await twoPods();
    const uid = world.uidOf("a");
    const directory = `${NODE_ROOT}/pods/${uid}`;
    host.fail("files.list", { path: `${directory}/volumes`, times });
    // Nothing else tells of it: the journal is lost, as after a repair of the disk.
    for (const name of await recordsOf(world)) await world.machine.files.removeFile(`${JOURNAL}/${name}`);
    if (goes === "before") await world.removePod("a");

    world.start({ host });
    await world.runFor(5_000);
    expect(world.manager.report().strays).toEqual([directory]);
    expect(world.inUse()).toContain("a");
    await world.runFor(60_000);
    if (goes === "after") await world.removePod("a");
    await world.runFor(180_000);

    expect(world.manager.report().strays).toEqual([]);
    expect(world.inUse()).toEqual(["b"]);
    expect((await world.mountPoints()).filter((path) => path.includes(uid))).toEqual([]);
    expect(await world.machine.files.stat(directory)).toBeUndefined();
    await world.stop();
  });

for (const [what, call, path] of [
  ["the directory of all pods", "files.list", `${NODE_ROOT}/pods`],
  ["the directory of the journal", "files.list", JOURNAL],
  ["the table of mounts", "mounts.table", undefined],
] as const)
  test(`${what} cannot be read at a start: nothing is mounted or taken down, it says so, and goes on once it can`, async () => {
    const { world, host } = await twoPods();
    host.fail(call, { ...(path !== undefined && { path }), times: 6 });
    await world.removePod("b");
    await world.startPod("c", { uses: ["a"] });

    world.start({ host });
    await world.runFor(2_000);
    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual(["a", "b"]);
    expect(world.manager.report()).toMatchObject({
      synced: false,
      problem: expect.stringContaining("nothing is mounted or taken down until it can") as string,
    });
    expect(world.log.some(({ message }) => message === "agent failed")).toBe(false);

    await world.runFor(60_000);
    expect(world.manager.report()).toMatchObject({ synced: true });
    expect(world.manager.report()).not.toHaveProperty("problem");
    expect(world.takeCalls().sort()).toEqual(
      ["publish a a", "publish a c", "stage a", "unpublish b b", "unstage b"].sort(),
    );
    expect(world.inUse()).toEqual(["a"]);
    await world.stop();
  });

test("it can be stopped while the directory of all pods cannot be read", async () => {
  const { world, host } = await twoPods();
  host.fail("files.list", { path: `${NODE_ROOT}/pods`, times: 1_000 });
  world.start({ host });
  await world.runFor(100_000);

  await world.stop();

  expect(world.log.some(({ message }) => message === "agent failed")).toBe(false);
  expect(world.inUse()).toEqual(["a", "b"]);
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
