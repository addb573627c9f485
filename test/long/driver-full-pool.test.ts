import { open, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { MIB } from "../../src/driver/options.ts";
import { devicesOfPool } from "../../src/driver/pool-devices.ts";
import { RESERVE_SPARES } from "../../src/driver/reserve.ts";
import { codeOf, createdVolume, published } from "../../src/driver/stage.testing.ts";
import { openRealWorld, run, whyNoDevices, type RealWorld } from "../e2e/driver-world.ts";

/** A pool on a filesystem of its own, filled until the kernel refuses a byte, or a file. */

const reason = await whyNoDevices();
if (reason !== undefined) process.stderr.write(`a full pool on real devices: skipped, ${reason}\n`);

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** An ext4 of 64 MiB with 256 inodes, mounted where the driver keeps its state. */
async function givenPool(): Promise<RealWorld> {
  const world = await openRealWorld();
  closers.push(() => world.close());
  const disk = world.path("disk.raw");
  await writeFile(disk, "");
  await run("truncate", ["--size", "64M", disk]);
  await run("mkfs.ext4", ["-q", "-F", "-m", "0", "-N", "256", disk]);
  await run("mkdir", [world.state]);
  await run("mount", ["-o", "loop", disk, world.state]);
  // Of a test that failed halfway: once their disk is unmounted lazily, devices are not found by its path any more.
  closers.push(async () => {
    const { images } = await devicesOfPool(world.host, world.state);
    for (const path of [world.path("pods", "target"), world.path("stage")])
      await run("umount", [path]).catch(() => undefined);
    for (const { path } of images) await run("losetup", ["--detach", path]);
  });
  return world;
}

/** Blocks to the last one, or inodes to the last one. */
async function fill(state: string, what: "bytes" | "files"): Promise<void> {
  if (what === "files") {
    for (let index = 0; ; index++) {
      try {
        await writeFile(join(state, `filler-${index}`), "");
      } catch (error) {
        expect(error).toMatchObject({ code: "ENOSPC" });
        return;
      }
    }
  }
  const file = await open(join(state, "filler"), "w");
  for (let size = 1 << 20; size >= 1;) {
    try {
      await file.write(Buffer.alloc(size, 1));
      await file.sync();
    } catch {
      size = Math.floor(size / 2);
    }
  }
  await file.close();
}

describe.skipIf(reason !== undefined).each(["bytes", "files"] as const)("a pool without %s", (what) => {
  test("unpublish, unstage, detach, delete and a restart work; then there is room, and the reserve is whole", async () => {
    const world = await givenPool();
    const paths = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "target") };
    const first = await world.open();
    const [volumeId, other] = [
      await createdVolume(first, "a", { sizeBytes: 16n * MIB }),
      await createdVolume(first, "b", { sizeBytes: 16n * MIB }),
    ];
    await published(first, volumeId, paths);
    await writeFile(join(paths.targetPath, "diary"), "precious", { flush: true });
    const { snapshot } = await first.controller.createSnapshot({ name: "s", sourceVolumeId: other });
    await fill(world.state, what);
    await expect(writeFile(join(world.state, "more"), "x".repeat(4_096))).rejects.toMatchObject({
      code: "ENOSPC",
    });

    const peer = await world.open();

    expect(await codeOf(createdVolume(peer, "c"))).toBe("RESOURCE_EXHAUSTED");
    expect(await readFile(join(paths.targetPath, "diary"), "utf8")).toBe("precious");
    await peer.node.nodeUnpublishVolume({ volumeId, targetPath: paths.targetPath });
    await peer.node.nodeUnstageVolume({ volumeId, stagingTargetPath: paths.stagingTargetPath });
    await peer.controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" });
    await peer.controller.deleteSnapshot({ snapshotId: snapshot?.snapshotId ?? "" });
    await peer.controller.deleteVolume({ volumeId });
    await run("sh", ["-c", `rm -f ${world.state}/filler*`]);
    await peer.controller.deleteVolume({ volumeId: other });

    expect(peer.driver.spares()).toBe(RESERVE_SPARES);
    expect(await codeOf(createdVolume(peer, "c", { sizeBytes: 16n * MIB }))).toBe("OK");
    const spares = await readdir(join(world.state, "reserve", "controller"));
    for (const name of spares)
      expect((await stat(join(world.state, "reserve", "controller", name))).blocks).toBeGreaterThanOrEqual(8);
  });
});
