import { expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { HostError } from "../node/host.ts";
import { createFaultyNodeHost } from "./node-host-faults.ts";
import { createMemoryHost } from "../node/memory/host.ts";
import { SimScheduler } from "./scheduler.ts";

const codeOf = (error: unknown) => (error instanceof HostError ? error.code : String(error));

async function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const machine = createMemoryHost({ clock });
  await machine.files.makeDirectories("/m", 0o750);
  await machine.mounts.mount({ source: "server:/export", target: "/m", type: "nfs", options: [] });
  return { scheduler, machine, host: createFaultyNodeHost(machine, { clock }) };
}

test("a look below a dead mount ends at its deadline; the table and other paths answer at once", async () => {
  const { scheduler, machine } = await given();
  machine.hang("/m");

  const look = machine.files.stat("/m/x").then(
    () => "answered",
    (error: unknown) => `${codeOf(error)} after ${scheduler.nowMs} ms`,
  );
  expect(await machine.mounts.isMountPoint("/m")).toBe(true);
  expect(await machine.files.stat("/tmp")).toBeDefined();
  await scheduler.runFor(60_000);

  expect(await look).toBe("TimedOut after 10000 ms");
});

test("scenario 128: a hung server: unmounting takes its time, then force ends it", async () => {
  const { scheduler, machine } = await given();
  machine.hang("/m");

  const gentle = machine.mounts.unmount("/m", { timeoutMs: 60_000 }).catch(codeOf);
  await scheduler.runFor(60_000);
  expect(await gentle).toBe("TimedOut");
  const forced = machine.mounts.cleanUp("/m", { timeoutMs: 60_000, force: true });
  await scheduler.runFor(60_000);
  await forced;

  expect(await machine.files.stat("/m")).toBeUndefined();
});

test("a broken mount says so until it is unmounted; a held one is busy until it is let go", async () => {
  const { machine } = await given();
  machine.breakMount("/m");
  machine.hold("/m");

  await expect(machine.files.list("/m")).rejects.toMatchObject({ code: "Corrupted" });
  await expect(machine.mounts.unmount("/m")).rejects.toMatchObject({ code: "Busy" });
  machine.release("/m");
  await machine.mounts.unmount("/m");
  expect(await machine.files.list("/m")).toEqual([]);
});

test("a reboot takes mounts and loop devices, and leaves files", async () => {
  const { machine } = await given();
  await machine.files.writeDurable("/record", "x");
  await machine.devices.attachLoop("/record");

  machine.reboot();

  expect((await machine.mounts.table()).points.map(({ path }) => path)).toEqual(["/"]);
  expect(await machine.devices.loopOf("/record")).toBeUndefined();
  expect(await machine.files.read("/record")).toBe("x");
});

test("a failure on request meets the call, the path and the number of times it was asked for", async () => {
  const { host } = await given();
  host.fail("files.makeFile", { code: "NoSpace", path: "/a", times: 2 });

  await host.files.makeFile("/b", 0o600);
  for (let times = 0; times < 2; times++)
    await expect(host.files.makeFile("/a", 0o600)).rejects.toMatchObject({ code: "NoSpace" });
  await host.files.makeFile("/a", 0o600);
  expect(host.log).toEqual(["files.makeFile /b", "files.makeFile /a"]);
});

test("a delayed call does its work when its time has come", async () => {
  const { host, machine, scheduler } = await given();
  host.delay("mounts.unmount", { ms: 5_000, path: "/m" });

  const unmounted = host.mounts.unmount("/m");
  await scheduler.runFor(4_999);
  expect(await machine.mounts.isMountPoint("/m")).toBe(true);
  await scheduler.runFor(1);
  await unmounted;
  expect(await machine.mounts.isMountPoint("/m")).toBe(false);
});

for (const [when, made] of [
  ["before", ["1"]],
  ["after", ["1", "2"]],
] as const)
  test(`a process that dies ${when} its second change leaves ${made.join(" and ")}, and hears of nothing again`, async () => {
    const { host, machine, scheduler } = await given();
    await machine.files.makeDirectories("/work", 0o750);
    host.dieAt(1, when);
    let ended = false;

    void (async () => {
      for (const name of ["1", "2", "3"]) await host.files.makeFile(`/work/${name}`, 0o600);
    })().finally(() => (ended = true));
    await scheduler.runFor(1_000);

    expect(host.isDead).toBe(true);
    expect(ended).toBe(false);
    expect((await machine.files.list("/work"))?.map(({ name }) => name)).toEqual(made);
  });
