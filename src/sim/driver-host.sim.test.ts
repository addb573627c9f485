import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { VolumeCapability_AccessMode_Mode as Mode } from "../csi/gen/csi_pb.ts";
import type { Host, HostErrorCode } from "../driver/host.ts";
import { MIB } from "../driver/options.ts";
import {
  blockCapability,
  codeOf,
  createdVolume,
  mountCapability,
  openPeer,
  type Peer,
} from "../driver/stage.testing.ts";
import { createMemoryHost, type MemoryHost } from "../node/memory/host.ts";
import { createDriverHost } from "./driver-host.ts";
import { DRIVER_VIEW } from "./host-calls.ts";
import { createFaultyMachine, type FaultyMachine } from "./host-faults.ts";
import { SimScheduler } from "./scheduler.ts";

/**
 * The production driver, a controller and two node services, and the node agent's view of files, mounts, devices and
 * processes, on one kernel in memory.
 */

const NODES = ["a", "b"] as const;
type NodeName = (typeof NODES)[number];
const pathsOn = (node: NodeName, volume = "v") => ({
  stagingTargetPath: `/var/lib/${node}/plugins/${volume}`,
  targetPath: `/var/lib/${node}/pods/${volume}`,
});

class Machine {
  readonly scheduler = new SimScheduler(createSeededRandom("scheduler"));
  readonly clock = this.scheduler.createClock();
  readonly node: MemoryHost = createMemoryHost({ clock: this.clock });
  #processes = 0;

  async begin(): Promise<this> {
    await this.node.files.makeDirectories("/state", 0o750);
    for (const name of NODES)
      for (const part of ["plugins/v", "plugins/w", "pods"])
        await this.node.files.makeDirectories(`/var/lib/${name}/${part}`, 0o750);
    this.node.sync("/");
    return this;
  }

  /** A process of the driver that has recovered, on its own view of the machine. */
  async start(name: "controller" | NodeName, host: Host = createDriverHost(this.node)): Promise<Peer> {
    const serves = name === "controller" ? "controller" : "node";
    const options = { nodeId: name, serves, ...(serves === "controller" && { nodes: NODES }) } as const;
    const peer = openPeer(host, this.clock, options, `${name} ${this.#processes++}`);
    await peer.driver.recover();
    return peer;
  }

  async services(): Promise<Services> {
    return {
      controller: await this.start("controller"),
      a: await this.start("a"),
      b: await this.start("b"),
    };
  }

  faulty(): FaultyMachine<Host, HostErrorCode> {
    return createFaultyMachine(createDriverHost(this.node), { clock: this.clock, view: DRIVER_VIEW });
  }

  async mountsOf(deviceNumber: string) {
    return (await this.node.mounts.table()).points.filter((point) => point.deviceNumber === deviceNumber);
  }
}

type Services = Record<"controller" | NodeName, Peer>;

interface Way {
  readonly volume?: string;
  readonly capability?: ReturnType<typeof blockCapability>;
}

async function up(services: Services, volumeId: string, node: NodeName, way: Way = {}): Promise<string> {
  const { volume = "v", capability: volumeCapability = mountCapability() } = way;
  const paths = pathsOn(node, volume);
  await services.controller.controller.controllerPublishVolume({ volumeId, nodeId: node, volumeCapability });
  const { stagingTargetPath } = paths;
  await services[node].node.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability });
  await services[node].node.nodePublishVolume({ volumeId, ...paths, volumeCapability });
  return paths.targetPath;
}

async function down(services: Services, volumeId: string, node: NodeName, volume = "v"): Promise<void> {
  const { stagingTargetPath, targetPath } = pathsOn(node, volume);
  await services[node].node.nodeUnpublishVolume({ volumeId, targetPath });
  await services[node].node.nodeUnstageVolume({ volumeId, stagingTargetPath });
  await services.controller.controller.controllerUnpublishVolume({ volumeId, nodeId: node });
}

const bytes = (text: string) => Buffer.from(text);

describe("a volume", () => {
  test("moves from node to node: what a pod wrote on the first is there on the second", async () => {
    const machine = await new Machine().begin();
    const services = await machine.services();
    const id = await createdVolume(services.controller, "v");

    const first = await up(services, id, "a");
    const [staged, published] = await machine.mountsOf("7:0");
    await machine.node.files.makeDirectories(`${first}/photos`, 0o755);
    await machine.node.files.writeFile(`${first}/photos/one`, bytes("precious"), 0o644);
    await down(services, id, "a");
    expect(await machine.mountsOf("7:0")).toEqual([]);
    expect(machine.node.kernel.loops.attached()).toEqual([]);
    const second = await up(services, id, "b");

    expect(staged).toMatchObject({
      path: pathsOn("a").stagingTargetPath,
      source: "/dev/loop0",
      type: "ext4",
    });
    expect(published).toMatchObject({
      path: first,
      root: "/",
      options: ["rw", "relatime", "errors=remount-ro"],
    });
    expect(await machine.node.files.read(`${second}/photos/one`)).toBe("precious");
    expect(await machine.node.files.usage(second)).toMatchObject({ type: "ext4", capacityBytes: 64 << 20 });
  });

  test("is copied with its directories by snapshots and clones, and each goes its own way", async () => {
    const machine = await new Machine().begin();
    const services = await machine.services();
    const { controller } = services.controller;
    const id = await createdVolume(services.controller, "v");
    const target = await up(services, id, "a");
    const write = (text: string) => machine.node.files.writeFile(`${target}/f`, bytes(text), 0o644);
    await write("one");

    const { snapshot } = await controller.createSnapshot({ name: "s", sourceVolumeId: id });
    await write("two");
    const source = { case: "snapshot", value: { snapshotId: snapshot?.snapshotId ?? "" } } as const;
    const { volume } = await controller.createVolume({
      name: "w",
      volumeCapabilities: [mountCapability()],
      volumeContentSource: { type: source },
    });
    const copy = await up(services, volume?.volumeId ?? "", "b", { volume: "w" });
    await machine.node.files.writeFile(`${copy}/g`, bytes("mine"), 0o644);

    expect(await machine.node.files.read(`${copy}/f`)).toBe("one");
    expect(await machine.node.files.read(`${target}/f`)).toBe("two");
    expect(await machine.node.files.read(`${target}/g`)).toBeUndefined();
  });

  test("that is raw is a device at its target for the agent, too, which may hold it by a loop device of its own", async () => {
    const machine = await new Machine().begin();
    const services = await machine.services();
    const capability = blockCapability();
    const id = await createdVolume(services.controller, "v", { capability });
    const target = await up(services, id, "a", { capability });
    const device = machine.node.openDevice(target, { inContainer: true });
    device.write("0", "precious");
    device.close();

    const held = await machine.node.devices.attachLoop(target);

    expect(held).toBe("/dev/loop1");
    expect(await machine.node.files.stat(target)).toMatchObject({ kind: "block", deviceNumber: "7:0" });
    expect(await machine.node.devices.sizeBytes(target)).toBe(64 << 20);
    const { stagingTargetPath, targetPath } = pathsOn("a");
    await services.a.node.nodeUnpublishVolume({ volumeId: id, targetPath });
    // What stands on the device keeps it, as a kubelet that has not let go yet.
    expect(await codeOf(services.a.node.nodeUnstageVolume({ volumeId: id, stagingTargetPath }))).not.toBe(
      "OK",
    );
    await machine.node.devices.detachLoop(target);
    await down(services, id, "a");
    const again = machine.node.openDevice(await up(services, id, "b", { capability }));
    expect(again.read("0")).toBe("precious");
  });

  test("gets the device number that another left, and is itself under it", async () => {
    const machine = await new Machine().begin();
    const services = await machine.services();
    const [one, two] = [
      await createdVolume(services.controller, "one"),
      await createdVolume(services.controller, "two"),
    ];
    await machine.node.files.writeFile(`${await up(services, one, "a")}/who`, bytes("one"), 0o644);
    await down(services, one, "a");

    const target = await up(services, two, "b");

    expect(machine.node.kernel.loops.attached()).toMatchObject([{ path: "/dev/loop0", diskseq: 3 }]);
    expect(await machine.node.files.read(`${target}/who`)).toBeUndefined();
  });
});

describe("a container that has a volume as a mount of its own", () => {
  test("does not keep the host's mounts, and does keep the filesystem and its device until it ends", async () => {
    const machine = await new Machine().begin();
    const services = await machine.services();
    const id = await createdVolume(services.controller, "v");
    const target = await up(services, id, "a");
    const pid = machine.node.startProcess({ binds: [target] });
    const { stagingTargetPath, targetPath } = pathsOn("a");

    await services.a.node.nodeUnpublishVolume({ volumeId: id, targetPath });
    const unstaged = await codeOf(services.a.node.nodeUnstageVolume({ volumeId: id, stagingTargetPath }));

    expect(unstaged).not.toBe("OK");
    expect(await machine.mountsOf("7:0")).toEqual([]);
    expect(machine.node.kernel.loops.attached()).toMatchObject([{ path: "/dev/loop0", autoclear: true }]);
    machine.node.endProcess(pid);
    expect(machine.node.kernel.loops.attached()).toEqual([]);
    await down(services, id, "a");
  });

  test("a process of the host that works in there keeps the mount", async () => {
    const machine = await new Machine().begin();
    const services = await machine.services();
    const id = await createdVolume(services.controller, "v");
    const target = await up(services, id, "a");
    const pid = machine.node.startProcess({ worksIn: target });

    await expect(down(services, id, "a")).rejects.toThrow(/target is busy/);
    expect(await machine.mountsOf("7:0")).toHaveLength(2);
    machine.node.endProcess(pid);
    await down(services, id, "a");
  });
});

describe("after the machine ends", () => {
  for (const [how, synced, kept] of [
    ["reboot", false, "new"],
    ["crash", false, "old"],
    ["crash", true, "new"],
  ] as const)
    test(`by a ${how}, what was written${synced ? " and synced" : ""} is ${kept}`, async () => {
      const machine = await new Machine().begin();
      let services = await machine.services();
      const id = await createdVolume(services.controller, "v");
      const write = (target: string, text: string) =>
        machine.node.files.writeFile(`${target}/f`, bytes(text), 0o644);
      await write(await up(services, id, "a"), "old");
      await down(services, id, "a");
      const target = await up(services, id, "a");
      await write(target, "new");
      if (synced) machine.node.sync(target);

      machine.node[how]();
      services = await machine.services();
      const again = await up(services, id, "a");

      expect(await machine.node.files.read(`${again}/f`)).toBe(kept);
      await down(services, id, "a");
      expect(machine.node.kernel.loops.attached()).toEqual([]);
    });
});

describe("one of two nodes that share the machine", () => {
  for (const access of ["mount", "block"] as const)
    test(`loses power with a ${access} volume: the other goes on, and it comes back with what was synced`, async () => {
      const machine = await new Machine().begin();
      const services = await machine.services();
      const capability = access === "mount" ? mountCapability() : blockCapability();
      const [mine, others] = [
        await createdVolume(services.controller, "mine", { capability }),
        await createdVolume(services.controller, "others"),
      ];
      const target = await up(services, mine, "a", { capability });
      const other = await up(services, others, "b");
      const write = (path: string) => machine.node.files.writeFile(`${path}/f`, bytes("x"), 0o644);
      if (access === "mount") await write(target);
      else await machine.node.devices.attachLoop(target);
      await write(other);
      const pid = machine.node.startProcess({ binds: [other] });
      machine.node.startProcess({ binds: [target] });

      machine.node.crash({ below: "/var/lib/a" });

      expect((await machine.node.mounts.table()).below("/var/lib/a")).toEqual([]);
      expect(machine.node.kernel.loops.attached()).toMatchObject([{ path: "/dev/loop1" }]);
      expect([...machine.node.kernel.processes.all.keys()]).toEqual([pid]);
      expect(await machine.node.files.read(`${other}/f`)).toBe("x");
      const again = { ...services, a: await machine.start("a") };
      const back = await up(again, mine, "a", { capability });
      if (access === "mount") expect(await machine.node.files.read(`${back}/f`)).toBeUndefined();
      await down(again, mine, "a");
    });
});

for (const access of ["mount", "block"] as const)
  test(`a ${access} volume that a node has let go of stays so after a power loss, also where that node never comes again`, async () => {
    const machine = await new Machine().begin();
    const services = await machine.services();
    const capability = access === "mount" ? mountCapability() : blockCapability();
    const id = await createdVolume(services.controller, "v", { capability });
    await up(services, id, "a", { capability });
    await down(services, id, "a");

    machine.node.crash();
    const { controller } = await machine.start("controller");
    await controller.deleteVolume({ volumeId: id });

    expect(await machine.node.files.list("/state/volumes")).toEqual([]);
    expect(machine.node.kernel.loops.attached()).toEqual([]);
  });

test("a pool that runs full refuses what is thick, and takes it once something was removed", async () => {
  const machine = await new Machine().begin();
  const { controller } = await machine.services();
  machine.node.kernel.storage.pool.freeBytes = 100n * MIB;
  const thick = (name: string) =>
    controller.controller.createVolume({
      name,
      parameters: { provisioning: "thick" },
      volumeCapabilities: [mountCapability({ mode: Mode.SINGLE_NODE_WRITER })],
      capacityRange: { requiredBytes: 64n * MIB },
    });
  const { volume } = await thick("one");

  expect(await codeOf(thick("two"))).toBe("RESOURCE_EXHAUSTED");
  await controller.controller.deleteVolume({ volumeId: volume?.volumeId ?? "" });
  expect(await codeOf(thick("two"))).toBe("OK");
});

test("a write to a filesystem that is frozen for a copy waits for its end", async () => {
  const machine = await new Machine().begin();
  const services = await machine.services();
  const target = await up(services, await createdVolume(services.controller, "v"), "a");
  const driver = createDriverHost(machine.node);
  await driver.mounts.freeze(target);
  let written = false;
  const writing = machine.node.files.writeFile(`${target}/f`, bytes("x"), 0o644).then(() => (written = true));

  await machine.scheduler.runFor(5_000);
  expect(written).toBe(false);
  await driver.mounts.thaw(target);
  await machine.scheduler.runFor(100);
  await writing;
});

test("a copy takes its time: who writes meanwhile tears it, who stops it leaves half of it", async () => {
  const machine = await new Machine().begin();
  const driver = createDriverHost(machine.node, { copies: { clock: machine.clock, partMs: 100 } });
  await driver.images.create("/state/image", 1n * MIB, { thick: false });
  await driver.loops.attach("/state/image", { readonly: false });
  const device = machine.node.openDevice("/dev/loop0");
  const write = (text: string) => ["1", "2", "3"].forEach((block) => device.write(block, text));
  write("old");
  const stop = new AbortController();

  const torn = driver.images.copy("/state/image", "/state/torn");
  const stopped = driver.images.copy("/state/image", "/state/stopped", { signal: stop.signal });
  stopped.catch(() => undefined);
  await machine.scheduler.runFor(150);
  write("new");
  stop.abort();
  await machine.scheduler.runFor(1_000);

  await torn;
  await expect(stopped).rejects.toMatchObject({ code: "TimedOut" });
  const contents = await Promise.all(
    ["torn", "stopped"].map(async (name) => {
      const { path } = await driver.loops.attach(`/state/${name}`, { readonly: true });
      return [await driver.filesystems.probe(path), machine.node.openDevice(path).read("3")];
    }),
  );
  expect(contents).toEqual([
    [{ kind: "blank" }, "new"],
    [{ kind: "other", what: "half a copy" }, undefined],
  ]);
  const copy = machine.node.openDevice("/dev/loop1");
  expect([copy.read("1"), copy.read("2")]).toEqual(["old", "old"]);
});

/** Every step of a volume's life, with a driver that is killed at the n-th change of the machine and started anew. */
describe("a driver killed at every change", () => {
  const LIFE: readonly ((machine: Machine, services: Services, id: string) => Promise<unknown>)[] = [
    (_, services, id) => up(services, id, "a"),
    (machine) => machine.node.files.writeFile(`${pathsOn("a").targetPath}/f`, bytes("precious"), 0o644),
    (_, { controller }, id) => controller.controller.createSnapshot({ name: "s", sourceVolumeId: id }),
    (_, services, id) => down(services, id, "a"),
    (_, services, id) => up(services, id, "b"),
    async (machine) => expect(await machine.node.files.read(`${pathsOn("b").targetPath}/f`)).toBe("precious"),
    (_, services, id) => down(services, id, "b"),
  ];

  async function live(change: number, when: "before" | "after"): Promise<number> {
    const machine = await new Machine().begin();
    const id = await createdVolume(await machine.start("controller"), "v");
    const faulty = machine.faulty();
    faulty.dieAt(change, when);
    let services: Services | undefined;
    const start = async () => ({
      controller: await machine.start("controller", faulty.host),
      a: await machine.start("a", faulty.host),
      b: await machine.start("b", faulty.host),
    });
    let next = 0;
    const lived = (async () => {
      services = await start();
      for (; next < LIFE.length; next++) await LIFE[next]?.(machine, services, id);
    })();
    const over = { isTrue: false };
    lived.finally(() => (over.isTrue = true)).catch(() => undefined);
    await machine.scheduler.runUntilTrue(() => over.isTrue || faulty.isDead, { withinMs: 1_000 });
    if (over.isTrue) await lived;
    else {
      expect(faulty.isDead, faulty.log.at(-1)).toBe(true);
      services = await machine.services();
      for (; next < LIFE.length; next++) await LIFE[next]?.(machine, services, id);
    }
    expect(machine.node.kernel.loops.attached()).toEqual([]);
    expect((await machine.node.mounts.table()).points).toHaveLength(1);
    return faulty.changes;
  }

  for (const when of ["before", "after"] as const)
    test(`${when} it was made: the next one finishes, nothing is lost, locked or left`, async () => {
      const changes = await live(Infinity, when);
      expect(changes).toBeGreaterThan(60);

      for (let change = 0; change < changes; change++)
        await live(change, when).catch((error: unknown) => {
          throw new Error(`killed ${when} change ${change}`, { cause: error });
        });
    });
});
