import { mkdir, open, readFile, stat, writeFile, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createLinuxHost } from "../../src/driver/linux-host.ts";
import { MIB } from "../../src/driver/options.ts";
import {
  blockCapability,
  codeOf,
  createdVolume,
  published,
  released,
  staged,
  type Peer,
} from "../../src/driver/stage.testing.ts";
import { createHurriedClock, openRealWorld, run, whyNoDevices, type RealWorld } from "../e2e/driver-world.ts";

/** A write through a path that was answered with OK lands in that volume: on real devices, with real holders. */

const reason = await whyNoDevices();
const capability = blockCapability();

const worlds: RealWorld[] = [];
const holders: FileHandle[] = [];
afterEach(async () => {
  for (const holder of holders.splice(0)) await holder.close().catch(() => undefined);
  for (const world of worlds.splice(0)) await world.close();
});

async function given() {
  const world = await openRealWorld();
  worlds.push(world);
  // A device in use is watched for half a second instead of 5.
  return { world, peer: await world.open({}, createLinuxHost({ clock: createHurriedClock() })) };
}

interface Placed {
  readonly volumeId: string;
  readonly capability: typeof capability;
  readonly stagingTargetPath: string;
  readonly targetPath: string;
  readonly image: string;
}

async function placed(world: RealWorld, peer: Peer, name: string): Promise<Placed> {
  const volumeId = await createdVolume(peer, name, { capability, sizeBytes: 16n * MIB });
  await mkdir(world.path(`stage-${name}`));
  return {
    volumeId,
    capability,
    stagingTargetPath: world.path(`stage-${name}`),
    targetPath: world.path("pods", name),
    image: join(world.state, "volumes", volumeId, "image.raw"),
  };
}

async function holderOf(path: string): Promise<FileHandle> {
  const holder = await open(path, "r");
  holders.push(holder);
  return holder;
}

async function writeTo(path: string, text: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.write(text, 0);
    await file.sync();
  } finally {
    await file.close();
  }
}

const startOf = async (path: string) => (await readFile(path)).subarray(0, 5).toString();

const deviceOf = async (world: RealWorld, image: string) => {
  const { dev, ino } = await stat(image, { bigint: true });
  return (await world.host.loops.list()).find(({ backing }) => backing === `${dev}/${ino}`);
};

describe.skipIf(reason !== undefined)("who a real device is", () => {
  test("unstage fails because of a holder, the volume is staged again, the holder goes: its target is still its own", async () => {
    const { world, peer } = await given();
    const [one, two] = [await placed(world, peer, "one"), await placed(world, peer, "two")];
    await published(peer, one.volumeId, one);
    const holder = await holderOf((await deviceOf(world, one.image))?.path ?? "");
    await peer.node.nodeUnpublishVolume({ volumeId: one.volumeId, targetPath: one.targetPath });
    const unstaged = peer.node.nodeUnstageVolume({
      volumeId: one.volumeId,
      stagingTargetPath: one.stagingTargetPath,
    });
    await expect(unstaged).rejects.toThrow(/in use/);

    await published(peer, one.volumeId, one);
    await holder.close();
    await published(peer, two.volumeId, two);
    await writeTo(one.targetPath, "first");

    expect([await startOf(one.image), await startOf(two.image)]).toEqual(["first", "\0\0\0\0\0"]);
    for (const volume of [one, two]) await released(peer, volume.volumeId, volume);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("the message of a device that stays says which process has it open", async () => {
    const { world, peer } = await given();
    const one = await placed(world, peer, "one");
    await staged(peer, one.volumeId, one);
    const device = (await deviceOf(world, one.image))?.path ?? "";
    await holderOf(device);

    const unstaged = peer.node.nodeUnstageVolume({
      volumeId: one.volumeId,
      stagingTargetPath: one.stagingTargetPath,
    });

    await expect(unstaged).rejects.toThrow(`(${process.pid})`);
  });

  test("a device detached behind the driver's back: its number is nobody's, its target is taken for nothing and mended", async () => {
    const { world, peer } = await given();
    const [one, two] = [await placed(world, peer, "one"), await placed(world, peer, "two")];
    await published(peer, one.volumeId, one);
    await run("losetup", ["--detach", (await deviceOf(world, one.image))?.path ?? ""]);

    // Whoever opens the target now must not get the next volume.
    await published(peer, two.volumeId, two);
    await writeTo(one.targetPath, "first").catch(() => undefined);
    expect(await startOf(two.image)).toBe("\0\0\0\0\0");
    const { volumeId, targetPath: volumePath } = one;
    expect(await codeOf(peer.node.nodeGetVolumeStats({ volumeId, volumePath }))).toBe("NOT_FOUND");
    expect(await codeOf(peer.node.nodeExpandVolume({ volumeId, volumePath }))).toBe("NOT_FOUND");

    await published(peer, one.volumeId, one);
    await writeTo(one.targetPath, "first");

    expect([await startOf(one.image), await startOf(two.image)]).toEqual(["first", "\0\0\0\0\0"]);
    for (const volume of [one, two]) await released(peer, volume.volumeId, volume);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("a target whose device is gone can be unpublished, and unstaged", async () => {
    const { world, peer } = await given();
    const one = await placed(world, peer, "one");
    await published(peer, one.volumeId, one);
    await run("losetup", ["--detach", (await deviceOf(world, one.image))?.path ?? ""]);

    await released(peer, one.volumeId, one);

    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("a read-only target is not bound to a read-only device that is about to go", async () => {
    const { world, peer } = await given();
    const one = await placed(world, peer, "one");
    await published(peer, one.volumeId, { ...one, readonly: true });
    const boundTo = async () => {
      const { rdev } = await stat(one.targetPath);
      return (await world.host.loops.list()).find(({ deviceNumber }) => deviceNumber === `7:${rdev & 0xff}`);
    };
    const holder = await holderOf((await boundTo())?.path ?? "");
    const { volumeId, targetPath } = one;
    expect(await codeOf(peer.node.nodeUnpublishVolume({ volumeId, targetPath }))).toBe("INTERNAL");
    await published(peer, volumeId, { ...one, readonly: true });

    await holder.close();

    expect(await boundTo()).toMatchObject({ readonly: true, autoclear: false });
    await released(peer, volumeId, one);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });
});

describe.skipIf(reason !== undefined)("what OK and healthy mean on a real machine", () => {
  test("started under another name, a node service says no to what its predecessor mounted", async () => {
    const { world, peer } = await given();
    const volumeId = await createdVolume(peer, "a");
    const paths = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "target") };
    await published(peer, volumeId, paths);
    const before = await world.leftovers();

    const renamed = await world.open({ nodeId: "node-9" });
    const { stagingTargetPath, targetPath } = paths;
    const unpublished = renamed.node.nodeUnpublishVolume({ volumeId, targetPath });
    await expect(unpublished).rejects.toThrow(/FAILED_PRECONDITION.*"node-1".*--nodeid/s);
    expect(await codeOf(renamed.node.nodeUnstageVolume({ volumeId, stagingTargetPath }))).toBe(
      "FAILED_PRECONDITION",
    );

    expect(await world.leftovers()).toEqual(before);
    await released(await world.open(), volumeId, paths);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("an ext4 that stopped taking writes after an error is not well", async () => {
    const { world, peer } = await given();
    const volumeId = await createdVolume(peer, "a");
    const paths = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "target") };
    await published(peer, volumeId, paths);
    const image = join(world.state, "volumes", volumeId, "image.raw");
    const device = (await deviceOf(world, image))?.path.replace("/dev/", "") ?? "";
    const stats = () => peer.node.nodeGetVolumeStats({ volumeId, volumePath: paths.targetPath });
    expect((await stats()).volumeCondition).toMatchObject({ abnormal: false });

    await writeFile(`/sys/fs/ext4/${device}/trigger_fs_error`, "test");

    await expect(writeFile(join(paths.targetPath, "x"), "y")).rejects.toMatchObject({ code: "EROFS" });
    expect((await stats()).volumeCondition).toMatchObject({ abnormal: true });
  });

  test("a raw target published with a slash at its end can be unpublished without, and the other way round", async () => {
    const { world, peer } = await given();
    const one = await placed(world, peer, "one");
    for (const [up, down] of [
      [`${one.targetPath}/`, one.targetPath],
      [one.targetPath, `${one.targetPath}/`],
    ] as const) {
      await published(peer, one.volumeId, { ...one, targetPath: up });
      await released(peer, one.volumeId, { ...one, targetPath: down });
      expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
    }
  });
});
