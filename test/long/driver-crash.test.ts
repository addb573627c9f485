import { createHash, randomBytes } from "node:crypto";
import { open, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createDyingHost } from "../../src/driver/dying-host.testing.ts";
import { lifeOf } from "../../src/driver/life.testing.ts";
import { mountCapability, type Peer } from "../../src/driver/stage.testing.ts";
import { openRealWorld, whyNoDevices, type RealWorld } from "../e2e/driver-world.ts";

/** 16 s on a quiet machine. */
const MOVES = 100;

const reason = await whyNoDevices();
if (reason !== undefined) process.stderr.write(`driver on real devices: skipped, ${reason}\n`);

/**
 * Every step takes 5 minutes for a mount volume (MOORING_EVERY_STEP=1, or 2 for every second one); the same enumeration
 * runs whole against the machine in memory in src/driver/crash.sim.test.ts.
 */
const STRIDE = Number(process.env.MOORING_EVERY_STEP ?? 30);

const worlds: RealWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

async function given(): Promise<RealWorld> {
  const world = await openRealWorld();
  worlds.push(world);
  return world;
}

const checksum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** 1 MiB at the start of a device, or a file in a filesystem. */
function dataAt(access: "mount" | "block") {
  const bytes = randomBytes(1 << 20);
  const expected = checksum(bytes);
  return {
    async write(path: string) {
      const file = await open(
        access === "mount" ? join(path, "diary") : path,
        access === "mount" ? "w" : "r+",
      );
      await file.write(bytes, 0, bytes.length, 0);
      await file.sync();
      await file.close();
    },
    async verify(path: string) {
      const found = Buffer.alloc(bytes.length);
      const file = await open(access === "mount" ? join(path, "diary") : path, "r");
      await file.read(found, 0, found.length, 0);
      await file.close();
      expect(checksum(found)).toBe(expected);
    },
  };
}

async function expectNothingLeft(world: RealWorld): Promise<void> {
  expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  expect(await readdir(world.path("pods"))).toEqual([]);
  expect(await readdir(world.path("stage"))).toEqual([]);
  for (const name of ["volumes", "snapshots"]) expect(await readdir(join(world.state, name))).toEqual([]);
}

describe.skipIf(reason !== undefined)("kill -9 on real devices", () => {
  test.each(["mount", "block"] as const)(
    "38: a %s volume: the driver dies at a step of its life; no data is lost, no device, mount or directory leaks",
    async (access) => {
      for (let step = 0, over = false; !over; step += STRIDE) {
        const world = await openRealWorld();
        worlds.push(world);
        const place = {
          stagingTargetPath: world.path("stage"),
          targetPath: world.path("pods", "target"),
          ...dataAt(access),
        };
        const { calls } = lifeOf(place, access);
        const dying = createDyingHost(world.host, { atStep: step });
        let next = 0;
        try {
          const peer = await world.open({}, dying.host);
          for (; next < calls.length; next++) await calls[next]!.run(peer);
        } catch (error) {
          if (!dying.isDead()) throw error;
        }
        over = !dying.isDead();

        const peer = await world.open();
        try {
          for (; next < calls.length; next++) await calls[next]!.run(peer);
          await expectNothingLeft(world);
        } catch (error) {
          throw new Error(`killed at step ${step}: ${dying.lastStep()}, in ${calls[next]?.name}`, {
            cause: error,
          });
        }
        await worlds.pop()?.close();
      }
    },
    1_800_000, // On a machine with other work all steps may take three times as long.
  );

  test("a volume moves between two nodes, all three processes killed now and then: its checksum never changes", async () => {
    const world = await given();
    const nodes = ["node-1", "node-2"];
    const bytes = randomBytes(1 << 20);
    const volumeCapability = mountCapability();
    const stagingTargetPath = world.path("stage");
    const targetPath = world.path("pods", "target");
    let kills = 0;

    /** Calls `work` on a process that may die at a step, its start included, until one that lives has answered. */
    async function onProcess<T>(
      options: object,
      atStep: number,
      work: (peer: Peer) => Promise<T>,
    ): Promise<T> {
      const dying = createDyingHost(world.host, { atStep });
      try {
        return await work(await world.open(options, dying.host));
      } catch (error) {
        if (!dying.isDead()) throw error;
        kills++;
        return work(await world.open(options));
      }
    }
    const onNode = (nodeId: string, atStep: number, work: (peer: Peer) => Promise<unknown>) =>
      onProcess({ nodeId, serves: "node" }, atStep, work);
    /** A start takes 11 steps, an attach or detach two more. */
    const onController = <T>(atStep: number, work: (peer: Peer) => Promise<T>) =>
      onProcess({ nodeId: "controller", nodes, serves: "controller" }, atStep, work);

    const { volume } = await onController(13, ({ controller }) =>
      controller.createVolume({
        name: "mover",
        volumeCapabilities: [volumeCapability],
        capacityRange: { requiredBytes: 32n << 20n },
      }),
    );
    const volumeId = volume?.volumeId ?? "";

    for (let move = 0; move < MOVES; move++) {
      const nodeId = nodes[move % 2]!;
      await onController(9 + (move % 7), ({ controller }) =>
        controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability }),
      );
      await onNode(nodeId, 9 + ((move * 7) % 23), async ({ node }) => {
        await node.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability });
        await node.nodePublishVolume({ volumeId, stagingTargetPath, targetPath, volumeCapability });
      });
      if (move === 0) await writeFile(join(targetPath, "data"), bytes, { flush: true });
      expect(checksum(await readFile(join(targetPath, "data")))).toBe(checksum(bytes));
      await onNode(nodeId, 9 + ((move * 5) % 19), async ({ node }) => {
        await node.nodeUnpublishVolume({ volumeId, targetPath });
        await node.nodeUnstageVolume({ volumeId, stagingTargetPath });
      });
      await onController(9 + ((move * 3) % 7), ({ controller }) =>
        controller.controllerUnpublishVolume({ volumeId, nodeId }),
      );
    }

    expect(kills).toBeGreaterThan(MOVES);
    await onController(14, ({ controller }) => controller.deleteVolume({ volumeId }));
    await expectNothingLeft(world);
  }, 600_000);
});
