import { describe, expect, test } from "vitest";
import type { Clock } from "../base/clock.ts";
import { chance, pick, type Random } from "../base/random.ts";
import { CsiError } from "../csi/errors.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { forSeeds } from "../sim/seeds.ts";
import { createDyingHost, type DyingHost } from "./dying-host.testing.ts";
import { createFakeHost, type OpenDevice } from "./fake-host.testing.ts";
import type { Host } from "./host.ts";
import { MIB } from "./options.ts";
import {
  blockCapability,
  createdVolume,
  mountCapability,
  openPeer,
  STATE,
  type Peer,
} from "./stage.testing.ts";

/**
 * Whose device is it? Loop numbers are given again, devices go when their last holder does, and a target names a number.
 * Between any two steps of the driver somebody opens or closes a device, and here also the driver is killed, the machine
 * is rebooted and, in the rough half, somebody detaches devices by hand and takes the numbers. Whatever happens: a write
 * through a target that was answered with OK lands in its own volume, and where nobody meddles, it lands there at once.
 */

const VOLUMES = [
  { name: "raw-1", capability: blockCapability() },
  { name: "raw-2", capability: blockCapability() },
  { name: "disk", capability: mountCapability() },
] as const;
const stagingOf = (name: string) => `/kubelet/stage-${name}`;
const imageOf = (id: string) => `${STATE}/volumes/${id}/image.raw`;
const FOREIGN = ["/kubelet/foreign-1", "/kubelet/foreign-2"];

interface Promised {
  readonly id: string;
  readonly readonly: boolean;
}

class Machine {
  readonly host = createFakeHost();
  readonly ids: string[] = [];
  /** Targets by path, from the OK of their publish until somebody asks for their unpublish. */
  readonly promised = new Map<string, Promised>();
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #meddled: boolean;
  readonly #holders: OpenDevice[] = [];
  readonly broken: unknown[] = [];
  writes = 0;
  #lives = 0;
  #process: { peer: Peer; dying: DyingHost } | undefined;

  constructor(random: Random, { meddled }: { readonly meddled: boolean }) {
    this.#random = random;
    this.#clock = new SimScheduler(random.fork("scheduler")).createClock();
    this.#meddled = meddled;
    this.host.makePath("/kubelet/pods");
    for (const { name } of VOLUMES) this.host.makePath(stagingOf(name));
  }

  async create(): Promise<void> {
    for (const path of FOREIGN) await this.host.images.create(path, MIB, { thick: false });
    const { driver, ...peer } = openPeer(this.host, this.#clock, {}, "maker");
    await driver.recover();
    for (const { name, capability } of VOLUMES) {
      const volumeId = await createdVolume({ driver, ...peer }, name, { capability, sizeBytes: 32n * MIB });
      await peer.controller.controllerPublishVolume({
        volumeId,
        nodeId: "node-1",
        volumeCapability: capability,
      });
      this.ids.push(volumeId);
    }
  }

  /** Before each look and each step of the driver others have their turn. */
  #disturbed(): Host {
    const wrap = <K extends keyof Host>(part: K): Host[K] => {
      const real = this.host[part] as unknown as Record<string, (...args: unknown[]) => unknown>;
      const wrapped = Object.keys(real).map((name) => [
        name,
        ["offered", "missingTool"].includes(name) || (part === "images" && name === "read")
          ? real[name]
          : async (...args: unknown[]) => {
              await this.others().catch((error: unknown) => this.broken.push(error));
              return real[name]?.(...args);
            },
      ]);
      return Object.fromEntries(wrapped) as Host[K];
    };
    return {
      files: wrap("files"),
      images: wrap("images"),
      loops: wrap("loops"),
      filesystems: wrap("filesystems"),
      mounts: wrap("mounts"),
    };
  }

  async others(): Promise<void> {
    // A call takes some 30 looks and steps, so a holder stays for about four calls.
    if (chance(this.#random, 0.02)) this.#open();
    if (chance(this.#random, 0.008)) this.#close();
    if (this.#meddled && chance(this.#random, 0.01)) await this.#detachOne();
    if (this.#meddled && chance(this.#random, 0.01))
      await this.host.loops.attach(pick(this.#random, FOREIGN), { readonly: false });
    if (chance(this.#random, 0.2)) this.checkPromised();
  }

  #open(): void {
    const path = pick(
      this.#random,
      [0, 1, 2, 3].map((number) => `/dev/loop${number}`),
    );
    try {
      this.#holders.push(this.host.openDevice(path));
    } catch {
      // Nothing is attached there.
    }
  }

  #close(): void {
    const [holder] = this.#holders.splice(this.#random.int(Math.max(1, this.#holders.length)), 1);
    holder?.close();
  }

  async #detachOne(): Promise<void> {
    const devices = await this.host.loops.list();
    if (devices.length > 0) await this.host.loops.detach(pick(this.#random, devices)).catch(() => undefined);
  }

  checkPromised(): void {
    for (const [path, { id, readonly }] of this.promised) {
      const token = `write ${++this.writes}`;
      let failed: unknown;
      try {
        this.host.writeData(path, "token", token);
      } catch (error) {
        failed = error;
      }
      const holding = this.ids.filter((one) => this.host.image(imageOf(one)).data.get("token") === token);
      expect(holding, `volumes that hold what was written to ${path}`).toEqual(
        failed === undefined && (!this.#meddled || holding.length > 0) ? [id] : [],
      );
      if (!this.#meddled)
        expect(failed instanceof Error ? failed.message.split(":")[0] : "written", path).toBe(
          readonly ? "EROFS" : "written",
        );
    }
  }

  async #peer(): Promise<Peer> {
    while (this.#process === undefined || this.#process.dying.isDead()) {
      const atStep = chance(this.#random, 0.5) ? this.#random.int(60) : Infinity;
      const dying = createDyingHost(this.#disturbed(), { atStep });
      this.#process = {
        dying,
        peer: openPeer(dying.host, this.#clock, {}, `life ${this.#lives++} ${this.#random.int(1 << 30)}`),
      };
      await this.#process.peer.driver.recover().catch((error: unknown) => {
        if (!dying.isDead()) throw error;
      });
    }
    return this.#process.peer;
  }

  async call(): Promise<void> {
    const index = this.#random.int(VOLUMES.length);
    const { name, capability } = VOLUMES[index]!;
    const volumeId = this.ids[index]!;
    const common = { volumeId, stagingTargetPath: stagingOf(name) };
    const targetPath = `/kubelet/pods/${name}-${this.#random.int(2)}`;
    const { node } = await this.#peer();
    const calls: readonly (() => Promise<unknown>)[] = [
      ...Array.from(
        { length: 3 },
        () => () => node.nodeStageVolume({ ...common, volumeCapability: capability }),
      ),
      ...Array.from({ length: 2 }, () => () => node.nodeUnstageVolume(common)),
      () => node.nodeGetVolumeStats({ volumeId, volumePath: targetPath }),
      () => node.nodeExpandVolume({ volumeId, volumePath: targetPath }),
      ...Array.from({ length: 3 }, () => async () => {
        const readonly = targetPath.endsWith("1");
        await node.nodePublishVolume({ ...common, targetPath, volumeCapability: capability, readonly });
        this.promised.set(targetPath, { id: volumeId, readonly });
      }),
      ...Array.from({ length: 3 }, () => async () => {
        this.promised.delete(targetPath);
        await node.nodeUnpublishVolume({ volumeId, targetPath });
      }),
    ];
    try {
      await pick(this.#random, calls)();
    } catch (error) {
      const expected = error instanceof CsiError || (error instanceof Error && error.name === "Killed");
      if (!expected) throw error;
    }
    this.checkPromised();
  }

  reboot(): void {
    this.#process = undefined;
    this.#holders.length = 0;
    this.promised.clear();
    this.host.reboot();
  }

  /** Everybody lets go: all can be taken down, and nothing is left but what others attached. */
  async takenDown(): Promise<void> {
    for (const holder of this.#holders.splice(0)) holder.close();
    this.promised.clear();
    const { driver, node } = openPeer(this.host, this.#clock, {}, "last");
    await driver.recover();
    for (const [index, { name }] of VOLUMES.entries()) {
      const volumeId = this.ids[index]!;
      for (const number of [0, 1])
        await node.nodeUnpublishVolume({ volumeId, targetPath: `/kubelet/pods/${name}-${number}` });
      await node.nodeUnstageVolume({ volumeId, stagingTargetPath: stagingOf(name) });
    }
    const foreign = await Promise.all(FOREIGN.map((path) => this.host.files.stat(path)));
    const left = (await this.host.loops.list()).filter(
      ({ backing }) => !foreign.some((file) => file?.identity === backing),
    );
    expect(left).toEqual([]);
    expect(await this.host.mounts.list()).toEqual([]);
  }
}

describe("holders open and close devices at every step, numbers are given again, machines reboot", () => {
  for (const meddled of [false, true]) {
    test(`a write through a target answered with OK ${meddled ? "never lands in another volume, whoever detaches devices by hand" : "lands in its own volume"}`, async () => {
      let writes = 0;
      await forSeeds(15, async (random) => {
        const machine = new Machine(random, { meddled });
        await machine.create();
        for (let calls = 0; calls < 120; calls++) {
          await machine.call();
          if (chance(random, 0.02)) machine.reboot();
          if (machine.broken.length > 0) throw machine.broken[0];
        }
        writes += machine.writes;
        await machine.takenDown();
      });
      expect(writes).toBeGreaterThan(1_000);
    });
  }
});
