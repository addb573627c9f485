import { mkdir, open, readFile, rename, stat, writeFile } from "node:fs/promises";
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
import { createHurriedClock, openRealWorld, run, whyNoDevices, type RealWorld } from "../e2e/driver-world.ts";

/** Names that mean something else than they seem to, and writes that are only half done: on a real kernel. */

const reason = await whyNoDevices();
if (reason !== undefined) process.stderr.write(`corners of the driver on real devices: skipped, ${reason}\n`);

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function given(): Promise<RealWorld> {
  const world = await openRealWorld();
  closers.push(() => world.close());
  return world;
}

const imageOf = (world: RealWorld, volumeId: string) => join(world.state, "volumes", volumeId, "image.raw");

async function deviceOf(world: RealWorld, image: string) {
  const { dev, ino } = await stat(image, { bigint: true });
  return (await world.host.loops.list()).find(({ backing }) => backing === `${dev}/${ino}`);
}

describe.skipIf(reason !== undefined)("corners of the driver on real devices", () => {
  test("a device that a container attached under another name, which is gone with it, is still the volume's", async () => {
    const world = await given();
    const peer = await world.open();
    const capability = blockCapability();
    const volumeId = await createdVolume(peer, "raw", { capability, sizeBytes: 16n * MIB });
    await mkdir(world.path("inside"));
    // Its mount namespace ends with the shell; the kernel spells the file as /volumes/... since.
    const script = 'mount --bind "$1" "$2" && exec losetup --find --show "$2/volumes/$3/image.raw"';
    const { stdout } = await run("unshare", [
      ...["--mount", "sh", "-c", script, "sh"],
      ...[world.state, world.path("inside"), volumeId],
    ]);
    closers.push(() => run("losetup", ["--detach", stdout.trim()]).catch(() => undefined));

    expect((await deviceOf(world, imageOf(world, volumeId)))?.path).toBe(stdout.trim());
    // Somebody may be writing to it: on this filesystem it is not copied.
    const { stdout: pool } = await run("stat", ["--file-system", "--format", "%T", world.root]);
    if (!/xfs|btrfs/.test(pool))
      expect(await codeOf(peer.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId }))).toBe(
        "FAILED_PRECONDITION",
      );
    await staged(peer, volumeId, { capability, stagingTargetPath: world.path("stage") });
    expect((await deviceOf(world, imageOf(world, volumeId)))?.path).toBe(stdout.trim());
    await peer.node.nodeUnstageVolume({ volumeId, stagingTargetPath: world.path("stage") });
    expect(await deviceOf(world, imageOf(world, volumeId))).toBeUndefined();
  });

  test("a disk mounted over the state directory, with a copy of it, does not inherit the devices of what it covers", async () => {
    const world = await given();
    const peer = await world.open();
    const capability = blockCapability();
    const volumeId = await createdVolume(peer, "raw", { capability, sizeBytes: 16n * MIB });
    const device = await world.host.loops.attach(imageOf(world, volumeId), { readonly: false });
    closers.push(() => world.host.loops.detach(device));
    await run("cp", ["--archive", world.state, world.path("copy")]);

    await run("mount", ["--bind", world.path("copy"), world.state]);

    expect(await deviceOf(world, imageOf(world, volumeId))).toBeUndefined();
  });

  test("a record that has no room is not written in part over one that was whole", async () => {
    const world = await given();
    await mkdir(world.path("full"));
    await run("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", world.path("full")]);
    const spare = world.path("full", "spare");
    await writeFile(spare, " ".repeat(4_096));
    await run("dd", ["if=/dev/zero", `of=${world.path("full", "filler")}`, "bs=4k"]).catch(() => undefined);

    await expect(world.host.files.overwrite(spare, "x".repeat(6_000))).rejects.toMatchObject({
      code: "NoSpace",
    });
  });

  test("a raw target whose device node was removed from /dev is taken off all the same", async () => {
    const world = await given();
    const peer = await world.open();
    const capability = blockCapability();
    const volumeId = await createdVolume(peer, "raw", { capability, sizeBytes: 16n * MIB });
    const at = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "raw") };
    await published(peer, volumeId, { capability, ...at });
    const { path } = (await deviceOf(world, imageOf(world, volumeId))) ?? { path: "" };
    await run("losetup", ["--detach", path]);
    const number = Number(path.replace("/dev/loop", ""));
    await control("0x4C81", number);
    closers.push(() => control("0x4C80", number).catch(() => undefined));

    await released(peer, volumeId, at);
    expect((await world.leftovers()).mounts).toEqual([]);
  });

  test("what was written to the middle of a device and is not in its image yet is data: it is not formatted", async () => {
    const world = await given();
    const peer = await world.open({}, createLinuxHost({ clock: createHurriedClock() }));
    const volumeId = await createdVolume(peer, "disk", { sizeBytes: 64n * MIB });
    const device = await world.host.loops.attach(imageOf(world, volumeId), { readonly: false });
    const writer = await open(device.path, "r+");
    closers.push(() => writer.close());
    await writer.write("precious", 20 * 1_048_576);

    // Nothing is final while the writer holds the device.
    expect(await codeOf(staged(peer, volumeId, { stagingTargetPath: world.path("stage") }))).toBe("ABORTED");
    const image = await readFile(imageOf(world, volumeId));
    expect(image.subarray(20 * 1_048_576, 20 * 1_048_576 + 8).toString()).toBe("precious");
  });

  test("records of the version before, without filesystem and device: what is formatted is used, what is blank is made", async () => {
    const world = await given();
    const peer = await world.open();
    const old = await createdVolume(peer, "old", { sizeBytes: 64n * MIB });
    const blank = await createdVolume(peer, "blank", { sizeBytes: 64n * MIB });
    const at = { stagingTargetPath: world.path("stage"), targetPath: world.path("pods", "t") };
    await published(peer, old, at);
    await writeFile(join(at.targetPath, "diary"), "precious");
    for (const id of [old, blank]) await forget(join(world.state, "volumes", id, "meta.json"), "filesystem");
    const [node] = (await run("sh", ["-c", `ls ${world.state}/node/*/${old}.json`])).stdout
      .trim()
      .split("\n");
    await forget(node ?? "", "device");

    const after = await world.open();
    expect(await readFile(join(at.targetPath, "diary"), "utf8")).toBe("precious");
    await released(after, old, at);
    await published(after, old, at);
    expect(await readFile(join(at.targetPath, "diary"), "utf8")).toBe("precious");
    expect(await readFile(join(world.state, "volumes", old, "meta.json"), "utf8")).toContain('"formatted"');
    await released(after, old, at);
    await published(after, blank, { ...at, capability: mountCapability() });
    await released(after, blank, at);
  });
});

async function forget(path: string, field: string): Promise<void> {
  const { [field]: _, ...left } = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  await writeFile(`${path}.new`, `${JSON.stringify(left)}\n`);
  await rename(`${path}.new`, path);
}

/** LOOP_CTL_REMOVE, as `losetup --remove` of newer versions does it: the device goes from /dev; and LOOP_CTL_ADD. */
async function control(request: string, number: number): Promise<void> {
  const script = `import fcntl,os;fcntl.ioctl(os.open("/dev/loop-control",os.O_RDWR),${request},${number})`;
  await run("python3", ["-c", script]);
}
