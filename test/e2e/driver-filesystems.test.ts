import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readFile, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { VolumeCapability_AccessMode_Mode as Mode } from "../../src/csi/gen/csi_pb.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createLinuxHost } from "../../src/driver/linux-host.ts";
import { MIB } from "../../src/driver/options.ts";
import {
  codeOf,
  createdVolume,
  mountCapability,
  published,
  released,
  type Peer,
} from "../../src/driver/stage.testing.ts";
import { openRealWorld, run, whyNoDevices, type RealWorld } from "./driver-world.ts";

/** Filesystems on real devices: what a fake cannot tell. */

const reason = await whyNoDevices();
const offered = createLinuxHost({ clock: createSystemClock() }).filesystems.offered();
if (reason === undefined && !offered.includes("xfs"))
  process.stderr.write("xfs on real devices: skipped, mkfs.xfs is not installed\n");

const worlds: RealWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

async function given() {
  const world = await openRealWorld();
  worlds.push(world);
  return { world, peer: await world.open() };
}

async function placed(world: RealWorld, name: string) {
  await mkdir(world.path(`stage-${name}`));
  return { stagingTargetPath: world.path(`stage-${name}`), targetPath: world.path("pods", name) };
}

const roomAt = async (path: string) => {
  const { blocks, bsize } = await statfs(path, { bigint: true });
  return blocks * bsize;
};

const sum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

describe.skipIf(reason !== undefined || !offered.includes("xfs"))("xfs on real devices", () => {
  const capability = mountCapability({ fsType: "xfs" });
  const SIZE = 320n * MIB;

  async function copied({ controller }: Peer, name: string, source: object): Promise<string> {
    const { volume } = await controller.createVolume({
      name,
      volumeCapabilities: [capability],
      capacityRange: { requiredBytes: SIZE + 64n * MIB },
      volumeContentSource: { type: source } as never,
    });
    return volume?.volumeId ?? "";
  }

  test("34: made, grown while mounted and while not, cut and cloned: all three mounted at once with the data and the room", async () => {
    const { world, peer } = await given();
    const disk = await placed(world, "disk");
    const volumeId = await createdVolume(peer, "disk", { sizeBytes: SIZE, capability });
    await published(peer, volumeId, { ...disk, capability });
    // Of which 64 MiB are the log.
    const room = await roomAt(disk.targetPath);
    const bytes = randomBytes(4 << 20);
    await writeFile(join(disk.targetPath, "diary"), bytes, { flush: true });

    const { snapshot } = await peer.controller.createSnapshot({ name: "cut", sourceVolumeId: volumeId });
    const clone = await copied(peer, "clone", { case: "volume", value: { volumeId } });
    await writeFile(join(disk.targetPath, "diary"), "spoiled", { flush: true });
    const restored = await copied(peer, "restored", {
      case: "snapshot",
      value: { snapshotId: snapshot?.snapshotId },
    });

    // Copies have their source's UUID, and the kernel mounts only one of each unless told otherwise.
    for (const [name, id] of Object.entries({ clone, restored })) {
      const there = await placed(world, name);
      await published(peer, id, { ...there, capability });
      expect(sum(await readFile(join(there.targetPath, "diary")))).toBe(sum(bytes));
      expect(await roomAt(there.targetPath)).toBeGreaterThan(room + 32n * MIB);
      await released(peer, id, there);
      await run("xfs_repair", ["-n", join(world.state, "volumes", id, "image.raw")]);
    }
    await peer.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: 2n * SIZE } });
    for (let again = 0; again < 2; again++)
      await peer.node.nodeExpandVolume({ volumeId, volumePath: disk.targetPath });
    expect(await roomAt(disk.targetPath)).toBeGreaterThan(room + 200n * MIB);
    expect(await readFile(join(disk.targetPath, "diary"), "utf8")).toBe("spoiled");
    await released(peer, volumeId, disk);
    expect(await world.leftovers()).toEqual({ mounts: [], devices: [] });
  });

  test("a read-only clone of a mounted volume is readable beside its source", async () => {
    const { world, peer } = await given();
    const [disk, reader] = [await placed(world, "disk"), await placed(world, "reader")];
    const volumeId = await createdVolume(peer, "disk", { sizeBytes: SIZE, capability });
    await published(peer, volumeId, { ...disk, capability });
    await writeFile(join(disk.targetPath, "diary"), "precious", { flush: true });
    const clone = await copied(peer, "clone", { case: "volume", value: { volumeId } });
    const readers = mountCapability({ fsType: "xfs", mode: Mode.MULTI_NODE_READER_ONLY });

    await published(peer, clone, { ...reader, capability: readers });

    expect(await readFile(join(reader.targetPath, "diary"), "utf8")).toBe("precious");
    await expect(writeFile(join(reader.targetPath, "x"), "y")).rejects.toMatchObject({ code: "EROFS" });
    // Asked for as ext4 it is left as it is.
    await released(peer, clone, reader);
    expect(
      await codeOf(published(peer, clone, { ...reader, capability: mountCapability({ fsType: "ext4" }) })),
    ).toBe("FAILED_PRECONDITION");
  });
});

describe.skipIf(reason !== undefined)("a writer beside a snapshot", () => {
  test("33: stalls for less than the freeze may take, goes on, and loses nothing", async () => {
    const { world, peer } = await given();
    const disk = await placed(world, "disk");
    const volumeId = await createdVolume(peer, "disk", { sizeBytes: 64n * MIB });
    await published(peer, volumeId, disk);
    const file = await open(join(disk.targetPath, "log"), "w");
    const clock = createSystemClock();
    const state = { lines: 0, longestMs: 0, over: false };
    const writer = (async () => {
      while (!state.over) {
        const before = clock.now();
        await file.write(`line ${state.lines}\n`);
        await file.sync();
        state.longestMs = Math.max(state.longestMs, clock.now() - before);
        state.lines++;
      }
    })();

    const before = state.lines;
    const { snapshot } = await peer.controller.createSnapshot({ name: "cut", sourceVolumeId: volumeId });
    const during = state.lines;
    while (state.lines < during + 5) await new Promise((resolve) => setImmediate(resolve));
    state.over = true;
    await writer;
    await file.close();

    expect(state.longestMs).toBeLessThan(10_000);
    const text = await readFile(join(disk.targetPath, "log"), "utf8");
    expect(text.trimEnd().split("\n")).toHaveLength(state.lines);
    const image = join(world.state, "snapshots", snapshot?.snapshotId ?? "", "image.raw");
    await run("e2fsck", ["-f", "-n", image]);
    const { stdout } = await run("debugfs", ["-R", "cat log", image]);
    const cut = stdout
      .trimEnd()
      .split("\n")
      .filter((line) => line !== "").length;
    expect(cut).toBeGreaterThanOrEqual(before);
    expect(cut).toBeLessThanOrEqual(during + 1);
  });
});
