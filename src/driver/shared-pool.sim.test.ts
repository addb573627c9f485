import { expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import { CsiError } from "../csi/errors.ts";
import { DRIVER_VIEW, mapCalls } from "../sim/host-calls.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { forSeeds } from "../sim/seeds.ts";
import { createDyingHost, type DyingHost } from "./dying-host.testing.ts";
import { createFakeHost, type FakeHost } from "./fake-host.testing.ts";
import type { Host, HostErrorCode } from "./host.ts";
import { MIB } from "./options.ts";
import { createdVolume, mountCapability, openPeer, STATE, type Peer } from "./stage.testing.ts";

/**
 * One pool, three processes: a controller service and two node services, called in no order at all, each killed now and
 * then at some step. Whatever the orchestrator does wrong, an image has one writable device, a volume for one node is
 * mounted on one node, and what is mounted at a volume's path is that volume.
 */

const volumeCapability = mountCapability();
const NODES = ["node-1", "node-2"] as const;
const stagingOf = (node: string, volume: number) => `/kubelet/${node}-${volume}`;
const targetOf = (node: string, volume: number) => `/kubelet/pods/${node}-${volume}`;

class Pool {
  readonly host: FakeHost = createFakeHost();
  readonly scheduler: SimScheduler;
  readonly ids: string[] = [];
  #processes = 0;
  readonly #random: Random;
  readonly #running = new Map<string, { peer: Peer; dying: DyingHost; recovered: Promise<void> }>();
  /** Kept aside: thrown where it is seen, a broken promise would look like a failed tool. */
  readonly broken: unknown[] = [];

  constructor(random: Random) {
    this.#random = random;
    this.scheduler = new SimScheduler(random.fork("scheduler"));
    this.host.makePath("/kubelet/pods");
    for (const node of NODES) for (const volume of [0, 1]) this.host.makePath(stagingOf(node, volume));
  }

  /** Every look and every step takes a moment, in which the others go on. */
  #slow(): Host {
    const clock = this.scheduler.createClock();
    return mapCalls<Host, HostErrorCode>(this.host, DRIVER_VIEW, async (_call, work) => {
      await clock.sleep(chance(this.#random, 0.05) ? 100 : this.#random.int(4));
      const answer = await work();
      await this.#checkAlways().catch((error: unknown) => this.broken.push(error));
      return answer;
    });
  }

  async peer(name: "controller" | (typeof NODES)[number]): Promise<Peer> {
    const known = this.#running.get(name);
    if (known !== undefined && !known.dying.isDead()) {
      await known.recovered;
      return known.peer;
    }
    const atStep = chance(this.#random, 0.7) ? this.#random.int(400) : Infinity;
    const dying = createDyingHost(this.#slow(), { atStep });
    const options =
      name === "controller"
        ? { nodeId: "controller", nodes: NODES, serves: "controller" as const }
        : { nodeId: name, serves: "node" as const };
    const seed = `${name} ${this.#processes++} ${this.#random.int(1 << 30)}`;
    const peer = openPeer(dying.host, this.scheduler.createClock(), options, seed);
    const recovered = peer.driver.recover();
    this.#running.set(name, { peer, dying, recovered });
    await recovered;
    return peer;
  }

  async #checkAlways(): Promise<void> {
    const devices = (await this.host.loops.list()).filter(({ readonly }) => !readonly);
    expect(new Set(devices.map(({ backing }) => backing)).size, "devices an image").toBe(devices.length);
    const mounts = await this.host.mounts.list();
    for (const [volume, id] of this.ids.entries()) {
      const staged = NODES.filter((node) => mounts.some(({ path }) => path === stagingOf(node, volume)));
      expect(staged.length, `nodes with ${id}`).toBeLessThanOrEqual(1);
      const image = (await this.host.files.stat(`${STATE}/volumes/${id}/image.raw`))?.identity;
      for (const mount of mounts.filter(({ path }) => path.endsWith(`-${volume}`))) {
        const device = devices.find(({ deviceNumber }) => deviceNumber === mount.deviceNumber);
        expect(device?.backing, `what is mounted at ${mount.path}`).toBe(image);
      }
    }
  }

  /** One call of somebody who knows no order. Refusals and deaths are expected; a broken promise is not. */
  async call(): Promise<void> {
    const volume = this.#random.int(this.ids.length);
    const volumeId = this.ids[volume]!;
    const nodeId = pick(this.#random, NODES);
    const paths = { stagingTargetPath: stagingOf(nodeId, volume), targetPath: targetOf(nodeId, volume) };
    const { stagingTargetPath, targetPath } = paths;
    const calls: readonly (() => Promise<unknown>)[] = [
      async () =>
        (await this.peer("controller")).controller.controllerPublishVolume({
          volumeId,
          nodeId,
          volumeCapability,
        }),
      async () => (await this.peer("controller")).controller.controllerUnpublishVolume({ volumeId, nodeId }),
      async () =>
        (await this.peer("controller")).controller.createSnapshot({
          name: `s${this.#random.int(4)}-${volume}`,
          sourceVolumeId: volumeId,
        }),
      async () =>
        (await this.peer(nodeId)).node.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability }),
      async () => (await this.peer(nodeId)).node.nodePublishVolume({ volumeId, ...paths, volumeCapability }),
      async () => (await this.peer(nodeId)).node.nodeUnpublishVolume({ volumeId, targetPath }),
      async () => (await this.peer(nodeId)).node.nodeUnstageVolume({ volumeId, stagingTargetPath }),
    ];
    try {
      await pick(this.#random, calls)();
    } catch (error) {
      const expected = error instanceof CsiError || (error instanceof Error && error.name === "Killed");
      if (!expected) throw error;
    }
  }
}

async function settled<T>(pool: Pool, work: Promise<T>): Promise<T> {
  let over = false;
  const watched = work.finally(() => (over = true));
  watched.catch(() => undefined);
  await pool.scheduler.runUntilTrue(() => over, { withinMs: 600_000 });
  return watched;
}

test("three processes on one pool, in any order and killed now and then: one device an image, one node a volume", async () => {
  await forSeeds(15, async (random) => {
    const pool = new Pool(random);
    const clock = pool.scheduler.createClock();
    for (const name of ["a", "b"]) {
      const maker = openPeer(
        pool.host,
        clock,
        { nodeId: "controller", serves: "controller" },
        `maker ${name}`,
      );
      await settled(pool, maker.driver.recover());
      pool.ids.push(await settled(pool, createdVolume(maker, name, { sizeBytes: 32n * MIB })));
    }
    const callers = Array.from({ length: 5 }, async () => {
      for (let calls = 0; calls < 60; calls++) {
        await pool.call();
        await clock.sleep(random.int(4));
      }
    });

    await settled(pool, Promise.all(callers));

    if (pool.broken.length > 0) throw pool.broken[0];
    await settled(pool, takenDown(pool));
  });
});

/** New processes that live: everything can be taken down, and nothing is left. */
async function takenDown(pool: Pool): Promise<void> {
  const clock = pool.scheduler.createClock();
  const controller = openPeer(
    pool.host,
    clock,
    { nodeId: "controller", nodes: NODES, serves: "controller" },
    "last controller",
  );
  await controller.driver.recover();
  for (const nodeId of NODES) {
    const { driver, node } = openPeer(pool.host, clock, { nodeId, serves: "node" }, `last ${nodeId}`);
    await driver.recover();
    for (const [volume, volumeId] of pool.ids.entries()) {
      await node.nodeUnpublishVolume({ volumeId, targetPath: targetOf(nodeId, volume) });
      await node.nodeUnstageVolume({ volumeId, stagingTargetPath: stagingOf(nodeId, volume) });
      await controller.controller.controllerUnpublishVolume({ volumeId, nodeId });
    }
  }
  for (const volumeId of pool.ids) await controller.controller.deleteVolume({ volumeId });
  expect(await pool.host.loops.list()).toEqual([]);
  expect(await pool.host.mounts.list()).toEqual([]);
  expect(pool.host.frozen()).toEqual([]);
  expect(pool.host.tree(`${STATE}/volumes`)).toEqual([]);
}
