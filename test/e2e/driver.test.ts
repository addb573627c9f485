import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, open, readFile, stat, statfs, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createLinuxHost } from "../../src/driver/linux-host.ts";
import { MIB } from "../../src/driver/options.ts";
import {
  blockCapability,
  codeOf,
  createdVolume,
  mountCapability,
  published,
  released,
  staged,
} from "../../src/driver/stage.testing.ts";
import { hostContract } from "../contract/driver-host.ts";
import { createHurriedClock, openRealWorld, run, whyNoDevices, type RealWorld } from "./driver-world.ts";

const reason = await whyNoDevices();
if (reason !== undefined) process.stderr.write(`driver on real devices: skipped, ${reason}\n`);

const worlds: RealWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

async function given() {
  const world = await openRealWorld();
  worlds.push(world);
  const paths = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "target") };
  return { world, paths, peer: await world.open(), target: paths.targetPath };
}

const imageOf = (world: RealWorld, id: string) => join(world.state, "volumes", id, "image.raw");

describe.skipIf(reason !== undefined)("the driver on real loop devices", () => {
  hostContract("this machine", async () => {
    const world = await openRealWorld();
    worlds.push(world);
    const root = world.path("contract");
    await mkdir(root);
    return { host: createLinuxHost({ clock: createHurriedClock() }), root };
  });

  test("16: a file survives unpublish, unstage, a restart of the driver and a new stage", async () => {
    const { world, paths, peer, target } = await given();
    const volumeId = await createdVolume(peer, "a");
    await published(peer, volumeId, paths);
    await writeFile(join(target, "diary"), "precious", { flush: true });
    await released(peer, volumeId, paths);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });

    const next = await world.open();
    await published(next, volumeId, paths);

    expect(await readFile(join(target, "diary"), "utf8")).toBe("precious");
  });

  test("26, 31: stats are those of statfs, a noatime flag is effective, and nothing is mounted over a link", async () => {
    const { world, paths, peer, target } = await given();
    const capability = mountCapability({ mountFlags: ["noatime"] });
    const volumeId = await createdVolume(peer, "a", { capability });
    await published(peer, volumeId, { ...paths, capability });

    const { usage } = await peer.node.nodeGetVolumeStats({ volumeId, volumePath: target });

    const { blocks, bsize, bavail, files } = await statfs(target, { bigint: true });
    expect(usage).toMatchObject([{ total: blocks * bsize, available: bavail * bsize }, { total: files }]);
    expect(await readFile("/proc/self/mountinfo", "utf8")).toMatch(new RegExp(`${target} [a-z,]*noatime`));
    const { mounts } = await world.leftovers();
    await mkdir(world.path("secret"));
    await symlink(world.path("secret"), world.path("pods", "link"));
    const stagingTargetPath = paths.stagingTargetPath;
    for (const targetPath of [world.path("pods", "link"), `${world.path("pods", "link")}/`]) {
      const request = { volumeId, stagingTargetPath, targetPath, volumeCapability: capability };
      expect(await codeOf(peer.node.nodePublishVolume(request))).toBe("INVALID_ARGUMENT");
    }
    expect((await world.leftovers()).mounts).toEqual(mounts);
  });

  test("20: read-only is effective: a file cannot be written, nor a device", async () => {
    const { world, paths, peer, target } = await given();
    const volumeId = await createdVolume(peer, "a");
    await published(peer, volumeId, { ...paths, readonly: true });
    await expect(writeFile(join(target, "x"), "y")).rejects.toMatchObject({ code: "EROFS" });
    const writable = world.path("pods", "writable");
    await peer.node.nodePublishVolume({
      volumeId,
      stagingTargetPath: paths.stagingTargetPath,
      targetPath: writable,
      volumeCapability: mountCapability(),
    });
    await writeFile(join(writable, "x"), "y");

    const capability = blockCapability();
    await mkdir(world.path("stage-b"));
    const block = {
      stagingTargetPath: world.path("stage-b"),
      targetPath: world.path("pods", "block"),
      capability,
    };
    const blockId = await createdVolume(peer, "b", { capability });
    await published(peer, blockId, { ...block, readonly: true });
    await expect(writeFile(block.targetPath, "x", { flag: "r+" })).rejects.toMatchObject({
      code: expect.stringMatching(/EACCES|EPERM|EROFS/),
    });
    await released(peer, blockId, block);
    expect((await world.leftovers()).devices).toHaveLength(1);
  });

  test("25, 29: a raw device is the loop device itself; it grows while in use; what is written is in the image after unstage", async () => {
    const { world, paths, peer, target } = await given();
    const capability = blockCapability();
    const volumeId = await createdVolume(peer, "a", { capability });
    await published(peer, volumeId, { ...paths, capability });
    const [device = ""] = (await world.leftovers()).devices;
    const node = await stat(target);
    expect([node.isBlockDevice(), node.rdev]).toEqual([true, (await stat(device)).rdev]);
    const grown = { requiredBytes: 96n * MIB };
    await peer.controller.controllerExpandVolume({ volumeId, capacityRange: grown });
    await peer.node.nodeExpandVolume({ volumeId, volumePath: target });
    expect(await world.host.loops.sizeBytes(device)).toBe(96n * MIB);
    const file = await open(target, "r+");
    await file.write("precious");
    await file.sync();
    await file.close();

    await released(peer, volumeId, paths);

    const image = await open(imageOf(world, volumeId), "r");
    expect((await image.read(Buffer.alloc(8), 0, 8, 0)).buffer.toString()).toBe("precious");
    await image.close();
  });

  test("18: a partition table or another filesystem is never formatted", async () => {
    const { world, paths, peer } = await given();
    const volumeId = await createdVolume(peer, "a");
    const table = Buffer.alloc(512);
    table.writeUInt16LE(0xaa55, 510);
    table.set([0x80, 1, 1, 0, 0x83, 0xfe, 0xff, 0xff, 0, 8, 0, 0, 0, 0, 1, 0], 446);
    await writeFile(imageOf(world, volumeId), table, { flag: "r+" });
    const sum = async () =>
      createHash("sha256")
        .update(await readFile(imageOf(world, volumeId)))
        .digest("hex");
    const before = await sum();

    expect(await codeOf(staged(peer, volumeId, paths))).toBe("FAILED_PRECONDITION");

    expect(await sum()).toBe(before);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("28, 30: grown while detached, the filesystem has the room after the next stage; grown while mounted, at once or then", async () => {
    const { paths, peer, target } = await given();
    const volumeId = await createdVolume(peer, "a", { sizeBytes: 32n * MIB });
    const room = async () => {
      const { blocks, bsize } = await statfs(target, { bigint: true });
      return blocks * bsize;
    };
    const expand = (bytes: bigint) =>
      peer.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: bytes } });
    await published(peer, volumeId, paths);
    await released(peer, volumeId, paths);
    await expand(96n * MIB);
    await published(peer, volumeId, paths);
    expect(await room()).toBeGreaterThan(70n * MIB);

    await expand(160n * MIB);
    const code = await codeOf(peer.node.nodeExpandVolume({ volumeId, volumePath: target }));

    expect(["OK", "FAILED_PRECONDITION"]).toContain(code);
    if (code !== "OK") {
      await released(peer, volumeId, paths);
      await published(peer, volumeId, paths);
    }
    expect(await room()).toBeGreaterThan(130n * MIB);
    expect(await codeOf(peer.node.nodeExpandVolume({ volumeId, volumePath: target }))).toBe("OK");
  });

  test("32, 35: a snapshot and a clone of a mounted volume: the data is there, fsck is content, writes do not cross", async () => {
    const { world, paths, peer, target } = await given();
    const volumeId = await createdVolume(peer, "a");
    await published(peer, volumeId, paths);
    await writeFile(join(target, "diary"), "precious", { flush: true });

    const { snapshot } = await peer.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
    const clone = await peer.controller.createVolume({
      name: "clone",
      volumeCapabilities: [mountCapability()],
      volumeContentSource: { type: { case: "volume", value: { volumeId } } },
    });
    await writeFile(join(target, "diary"), "spoiled!", { flush: true });

    const cloneId = clone.volume?.volumeId ?? "";
    await run("e2fsck", [
      "-f",
      "-n",
      join(world.state, "snapshots", snapshot?.snapshotId ?? "", "image.raw"),
    ]);
    await run("e2fsck", ["-f", "-n", imageOf(world, cloneId)]);
    await mkdir(world.path("stage-c"));
    const there = { stagingTargetPath: world.path("stage-c"), targetPath: world.path("pods", "clone") };
    await published(peer, cloneId, there);
    expect(await readFile(join(there.targetPath, "diary"), "utf8")).toBe("precious");
    expect(await readFile(join(target, "diary"), "utf8")).toBe("spoiled!");
  });

  test("23: unpublish while a process works there fails and loses nothing; afterwards it works", async () => {
    const { world, paths, peer, target } = await given();
    const volumeId = await createdVolume(peer, "a");
    await published(peer, volumeId, paths);
    const worker = spawn("sleep", ["60"], { cwd: target });
    await once(worker, "spawn");

    expect(await codeOf(peer.node.nodeUnpublishVolume({ volumeId, targetPath: target }))).toBe("INTERNAL");
    await writeFile(join(target, "diary"), "still here", { flush: true });
    worker.kill("SIGKILL");
    await once(worker, "exit");
    await released(peer, volumeId, paths);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
    await published(peer, volumeId, paths);
    expect(await readFile(join(target, "diary"), "utf8")).toBe("still here");
  });

  test("27, 40: 20 stages at once get 20 devices; a reboot behind the driver's back is repaired", async () => {
    const { world, peer } = await given();
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, index) => createdVolume(peer, `v${index}`, { sizeBytes: 16n * MIB })),
    );
    await Promise.all(
      ids.map(async (id, index) => {
        await mkdir(world.path(`stage-${index}`));
        await staged(peer, id, { stagingTargetPath: world.path(`stage-${index}`) });
      }),
    );
    const { mounts, devices } = await world.leftovers();
    expect([mounts.length, new Set(devices).size]).toEqual([20, 20]);

    await Promise.all(mounts.map((path) => run("umount", [path])));
    await run("losetup", ["--detach", ...devices]);
    const after = await world.open();
    await after.node.nodeStageVolume({
      volumeId: ids[0]!,
      stagingTargetPath: world.path("stage-0"),
      volumeCapability: mountCapability(),
    });
    expect((await world.leftovers()).mounts).toEqual([world.path("stage-0")]);
    await Promise.all(
      ids.map((volumeId, index) =>
        after.node.nodeUnstageVolume({ volumeId, stagingTargetPath: world.path(`stage-${index}`) }),
      ),
    );
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("an image deleted under a mounted volume: abnormal, and everything can still be taken down", async () => {
    const { world, paths, peer, target } = await given();
    const volumeId = await createdVolume(peer, "a");
    await published(peer, volumeId, paths);
    await world.host.files.removeFile(imageOf(world, volumeId));

    const { status } = await peer.controller.controllerGetVolume({ volumeId });

    expect(status?.volumeCondition).toMatchObject({ abnormal: true });
    expect(await codeOf(peer.node.nodeGetVolumeStats({ volumeId, volumePath: target }))).toBe("OK");
    await released(peer, volumeId, paths);
    await peer.controller.deleteVolume({ volumeId });
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("1: thick is allocated, and what cannot be is refused and leaves nothing", async () => {
    const { world, peer } = await given();
    const thick = (name: string, requiredBytes: bigint) =>
      peer.controller.createVolume({
        name,
        volumeCapabilities: [mountCapability()],
        capacityRange: { requiredBytes },
        parameters: { provisioning: "thick" },
      });

    const { volume } = await thick("a", 16n * MIB);

    expect(
      (await world.host.files.stat(imageOf(world, volume?.volumeId ?? "")))?.allocatedBytes,
    ).toBeGreaterThanOrEqual(16n * MIB);
    const { freeBytes } = await world.host.images.pool(world.state);
    if (freeBytes < 900n * 1_024n * MIB) {
      expect(await codeOf(thick("b", 900n * 1_024n * MIB))).toBe("RESOURCE_EXHAUSTED");
      expect(await world.host.files.list(join(world.state, "volumes"))).toEqual([volume?.volumeId]);
    }
  });
});
