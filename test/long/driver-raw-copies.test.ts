import { existsSync } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { MIB } from "../../src/driver/options.ts";
import { blockCapability, createdVolume, published, released } from "../../src/driver/stage.testing.ts";
import { openRealWorld, run, whyNoDevices, type RealWorld } from "../e2e/driver-world.ts";

/** Copies of a raw device while somebody writes to it, on real filesystems: of one moment, or none. */

const reason = await whyNoDevices();
const capability = blockCapability();
for (const type of ["xfs", "btrfs"])
  if (reason === undefined && !existsSync(`/usr/sbin/mkfs.${type}`))
    process.stderr.write(`raw copies on ${type}: skipped, mkfs.${type} is not installed\n`);

const worlds: RealWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

describe.skipIf(reason !== undefined)("a raw volume under writes", () => {
  const clock = createSystemClock();
  const SIZE = 64n * MIB;
  const FAR = Number(SIZE) - 4_096;

  /** B is written only when A is on the disk: no moment has B ahead of A. */
  async function writing(path: string): Promise<() => Promise<number>> {
    const file = await open(path, "r+");
    const end = new AbortController();
    const work = (async () => {
      let count = 0;
      const page = Buffer.alloc(4_096);
      while (!end.signal.aborted) {
        page.writeUInt32LE(++count);
        for (const at of [0, FAR]) {
          await file.write(page, 0, 4_096, at);
          await file.datasync();
        }
      }
      return count;
    })();
    return async () => {
      end.abort();
      const count = await work;
      await file.close();
      return count;
    };
  }

  async function givenOn(type: "ext4" | "xfs" | "btrfs") {
    const world = await openRealWorld();
    worlds.push(world);
    const disk = world.path("disk");
    await (await open(disk, "w")).close();
    await run("truncate", ["--size", "640M", disk]);
    await run(`mkfs.${type}`, ["-q", disk]);
    await mkdir(world.path("pool"));
    await run("mount", ["-o", "loop", disk, world.path("pool")]);
    const stateDir = world.path("pool", "state");
    const peer = await world.open({ stateDir });
    const volumeId = await createdVolume(peer, "raw", { capability, sizeBytes: SIZE });
    const paths = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "raw") };
    await published(peer, volumeId, { ...paths, capability });
    // What is to be copied between the two blocks takes a while.
    await run("dd", ["if=/dev/urandom", `of=${paths.targetPath}`, "bs=1M", "count=63", "oflag=direct"]);
    return { world, peer, volumeId, paths, stateDir };
  }

  const countersOf = async (image: string) => {
    const file = await open(image, "r");
    const read = async (at: number) => (await file.read(Buffer.alloc(4), 0, 4, at)).buffer.readUInt32LE();
    const counters = [await read(0), await read(FAR)] as const;
    await file.close();
    return counters;
  };

  for (const type of ["xfs", "btrfs"] as const) {
    test.skipIf(!existsSync(`/usr/sbin/mkfs.${type}`))(
      `on ${type} its copies are of one moment: of two blocks written in order the later is never ahead`,
      async () => {
        const { peer, volumeId, paths, stateDir } = await givenOn(type);
        const stop = await writing(paths.targetPath);
        for (let cut = 0; cut < 8; cut++) {
          const { snapshot } = await peer.controller.createSnapshot({
            name: `cut ${cut}`,
            sourceVolumeId: volumeId,
          });
          const [a, b] = await countersOf(
            join(stateDir, "snapshots", snapshot?.snapshotId ?? "", "image.raw"),
          );
          expect([a - b, a > 0]).toEqual([
            expect.toSatisfy((ahead: number) => ahead === 0 || ahead === 1),
            true,
          ]);
          await clock.sleep(10);
        }
        expect(await stop()).toBeGreaterThan(8);
        await released(peer, volumeId, paths);
      },
      60_000,
    );
  }

  test("on ext4 it is refused with the way out, and made once the volume is unstaged", async () => {
    const { peer, volumeId, paths, stateDir } = await givenOn("ext4");
    const cut = (name: string) => peer.controller.createSnapshot({ name, sourceVolumeId: volumeId });
    const stop = await writing(paths.targetPath);
    await clock.sleep(50);
    await expect(cut("torn")).rejects.toThrow(
      /FAILED_PRECONDITION.*unpublish and unstage it first.*reflink/s,
    );
    const count = await stop();
    await released(peer, volumeId, paths);

    const { snapshot } = await cut("whole");

    const image = join(stateDir, "snapshots", snapshot?.snapshotId ?? "", "image.raw");
    expect(await countersOf(image)).toEqual([count, count]);
  }, 60_000);
});
