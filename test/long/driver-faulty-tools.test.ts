import { createHash } from "node:crypto";
import { chmod, mkdir, open, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createLinuxHost } from "../../src/driver/linux-host.ts";
import { MIB } from "../../src/driver/options.ts";
import { codeOf, createdVolume, published, released, staged } from "../../src/driver/stage.testing.ts";
import { openRealWorld, whyNoDevices, type RealWorld } from "../e2e/driver-world.ts";

/** Real images and devices with tools that fail or lie: a sample of src/driver/io-faults.sim.test.ts. */

const reason = await whyNoDevices();
if (reason !== undefined) process.stderr.write(`faulty tools on real devices: skipped, ${reason}\n`);

const worlds: RealWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

async function given() {
  const world = await openRealWorld();
  worlds.push(world);
  const paths = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "target") };
  return { world, paths, peer: await world.open() };
}

/** The tools of this machine, with some of them replaced by scripts. */
async function hostWith(world: RealWorld, scripts: Readonly<Record<string, string>>) {
  const directory = world.path("tools");
  await mkdir(directory, { recursive: true });
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(join(directory, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(directory, name), 0o755);
  }
  const toolDirectories = [directory, "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  return createLinuxHost({ clock: createSystemClock(), toolDirectories });
}

const checksum = async (path: string) =>
  createHash("sha256")
    .update(await readFile(path))
    .digest("hex");

describe.skipIf(reason !== undefined)("tools that fail or lie, on real images", () => {
  const nothing = "exit 0";
  const broken = 'echo "Input/output error" >&2; exit 1';
  const blind = "exit 2";

  test.each<[string, Record<string, string>, boolean, string]>([
    [
      "blkid finds nothing and mkfs fails",
      { blkid: blind, "mkfs.ext4": broken },
      true,
      "FAILED_PRECONDITION",
    ],
    [
      "the same, and no record of a filesystem",
      { blkid: blind, "mkfs.ext4": broken },
      false,
      "FAILED_PRECONDITION",
    ],
    ["blkid finds nothing and mkfs would work", { blkid: blind }, false, "FAILED_PRECONDITION"],
    [
      "blkid finds nothing, filefrag no extents",
      { blkid: blind, filefrag: 'echo "x: 0 extents found"' },
      false,
      "FAILED_PRECONDITION",
    ],
    ["blkid calls it xfs", { blkid: "echo TYPE=xfs" }, false, "FAILED_PRECONDITION"],
    ["blkid fails", { blkid: broken }, true, "INTERNAL"],
    ["e2fsck fails", { e2fsck: "exit 8" }, true, "INTERNAL"],
    ["losetup fails", { losetup: broken }, true, "INTERNAL"],
    ["mount fails", { mount: broken, e2fsck: nothing }, true, "INTERNAL"],
    ["mount does nothing", { mount: nothing, e2fsck: nothing }, true, "INTERNAL"],
  ])(
    "%s: no byte of the image changes, and with honest tools the data is there",
    async (_, scripts, isRecorded, code) => {
      const { world, paths, peer } = await given();
      const volumeId = await createdVolume(peer, "a", { sizeBytes: 16n * MIB });
      await published(peer, volumeId, paths);
      await writeFile(join(paths.targetPath, "diary"), "precious", { flush: true });
      await released(peer, volumeId, paths);
      const directory = join(world.state, "volumes", volumeId);
      const record = JSON.parse(await readFile(join(directory, "meta.json"), "utf8")) as {
        filesystem?: object;
      };
      expect(record.filesystem).toMatchObject({ phase: "formatted", type: "ext4" });
      // As a version that did not record it left it.
      if (!isRecorded)
        await writeFile(join(directory, "meta.json"), JSON.stringify({ ...record, filesystem: undefined }));
      const before = await checksum(join(directory, "image.raw"));

      const faulty = await world.open({}, await hostWith(world, scripts));
      for (let again = 0; again < 2; again++)
        expect(await codeOf(staged(faulty, volumeId, paths))).toBe(code);

      expect(await checksum(join(directory, "image.raw"))).toBe(before);
      expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
      const honest = await world.open();
      await published(honest, volumeId, paths);
      expect(await readFile(join(paths.targetPath, "diary"), "utf8")).toBe("precious");
      await released(honest, volumeId, paths);
    },
  );

  test.each([
    ["fails", broken],
    ["does nothing", nothing],
    ["is killed halfway", 'dd if=/dev/urandom of="$7" bs=64k count=4 conv=notrunc 2>/dev/null; kill -9 $$'],
  ])("mkfs %s on a new volume: an error with its cause, and the next stage makes it", async (_, script) => {
    const { world, paths, peer } = await given();
    const volumeId = await createdVolume(peer, "a", { sizeBytes: 16n * MIB });

    // mkfs.ext4 -q -F -m 0 -E OPTIONS DEVICE
    const host = await hostWith(world, { "mkfs.ext4": script });
    const faulty = await world.open({}, host);
    expect(await codeOf(staged(faulty, volumeId, paths))).toBe("INTERNAL");

    const honest = await world.open();
    await published(honest, volumeId, paths);
    await writeFile(join(paths.targetPath, "diary"), "precious", { flush: true });
    await released(honest, volumeId, paths);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("a device that cannot be read (its file was cut under it) is an error, though blkid finds nothing and exits with 2", async () => {
    const { world } = await given();
    const image = world.path("image");
    await world.host.images.create(image, 16n * MIB, { thick: false });
    const device = await world.host.loops.attach(image, { readonly: false });
    await truncate(image, 0);

    await expect(world.host.filesystems.probe(device.path)).rejects.toMatchObject({
      code: "Failed",
      message: expect.stringContaining("EIO") as string,
    });
    await world.host.loops.detach(device);
  });

  test("holes are skipped and every byte counts: one that is not zero, anywhere in 1 TiB, is found", async () => {
    const { world } = await given();
    const image = world.path("image");
    await world.host.images.create(image, 1n << 40n, { thick: false });
    const startedAtMs = Date.now();

    expect(await world.host.images.firstNonZero(image)).toBeUndefined();

    expect(Date.now() - startedAtMs).toBeLessThan(10_000);
    for (const at of [(1 << 30) * 700 + 12_345, (1 << 30) * 3 + 4_095]) {
      const file = await open(image, "r+");
      await file.write(Buffer.from([1]), 0, 1, at);
      await file.close();
      expect(await world.host.images.firstNonZero(image)).toBe(BigInt(at));
    }
    const blind = await hostWith(world, { filefrag: "exit 1" });
    await world.host.images.create(world.path("small"), 64n * MIB, { thick: true });
    expect(await blind.images.firstNonZero(world.path("small"))).toBeUndefined();
  });
});
