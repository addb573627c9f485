import { describe, expect, test } from "vitest";
import { createFakeHost, type FakeHost } from "./fake-host.testing.ts";
import { planFilesystem, type FilesystemView } from "./filesystem.ts";
import { HostError, type Content } from "./host.ts";
import type { FilesystemRecord } from "./records.ts";
import {
  codeOf,
  createdVolume,
  given,
  mountCapability,
  published,
  released,
  staged,
  STATE,
  TARGET,
  type World,
} from "./stage.testing.ts";

/** What is not proven blank is never formatted, and what was formatted once is never formatted again. */

const imageOf = (id: string) => `${STATE}/volumes/${id}/image.raw`;

async function givenData(): Promise<{ world: World; host: FakeHost; volumeId: string }> {
  const host = createFakeHost();
  const world = await given({}, host);
  const volumeId = await createdVolume(world, "a");
  await published(world, volumeId);
  host.writeData(TARGET, "diary", "precious");
  await released(world, volumeId);
  return { world, host, volumeId };
}

/** As a version before this one left it, or as a restored backup of the records would. */
async function forget(host: FakeHost, volumeId: string): Promise<void> {
  const path = `${STATE}/volumes/${volumeId}/meta.json`;
  const { filesystem: _, ...record } = JSON.parse((await host.files.read(path)) ?? "") as {
    filesystem?: unknown;
  };
  await host.files.writeDurable(path, JSON.stringify(record));
}

describe("a device that cannot be read", () => {
  test.each([
    ["and mkfs fails on it", "Failed"],
    ["and mkfs hangs", "TimedOut"],
  ] as const)("is called blank by blkid, %s: nothing of the image changes", async (_, code) => {
    const { world, host, volumeId } = await givenData();
    await forget(host, volumeId);
    const real = { ...host.filesystems };
    host.filesystems.probe = async () => ({ kind: "blank" });
    host.filesystems.format = async () => {
      throw new HostError(code, "mkfs.ext4 exited with 1: Input/output error");
    };

    expect(await codeOf(staged(world, volumeId))).toBe("FAILED_PRECONDITION");
    Object.assign(host.filesystems, real);

    expect(host.image(imageOf(volumeId)).data.get("diary")).toBe("precious");
    await published(await world.restart(), volumeId);
    expect(host.readData(TARGET, "diary")).toBe("precious");
  });

  test("is an error with its cause; read again, the volume is there with its data", async () => {
    const { world, host, volumeId } = await givenData();
    host.image(imageOf(volumeId)).isBroken = true;

    await expect(staged(world, volumeId)).rejects.toMatchObject({
      code: "INTERNAL",
      detail: expect.stringContaining("EIO") as string,
    });
    host.image(imageOf(volumeId)).isBroken = false;

    await published(world, volumeId);
    expect(host.readData(TARGET, "diary")).toBe("precious");
  });

  test("is not blank when only the reading of the image fails", async () => {
    const host = createFakeHost();
    const world = await given({}, host);
    const volumeId = await createdVolume(world, "a");
    host.images.firstNonZero = async () => {
      throw new HostError("Failed", "read image.raw: EIO");
    };
    host.filesystems.format = async () => expect.unreachable("formatted what was not read");

    await expect(staged(world, volumeId)).rejects.toMatchObject({
      code: "INTERNAL",
      detail: expect.stringContaining("EIO") as string,
    });
  });
});

describe("a volume that was formatted", () => {
  test("and reads blank is left alone, by this node and by another, restarted or not", async () => {
    const { world, host, volumeId } = await givenData();
    Object.assign(host.image(imageOf(volumeId)), { content: { kind: "blank" }, data: new Map() });
    host.filesystems.format = async () => expect.unreachable("formatted again");

    for (const peer of [world, await world.restart()]) {
      await expect(staged(peer, volumeId)).rejects.toMatchObject({
        code: "FAILED_PRECONDITION",
        detail: expect.stringMatching(
          /was formatted as ext4 at .* reads blank: it is not formatted again/,
        ) as string,
      });
    }
  });

  test("hands that on to its snapshots, their restores and its clones", async () => {
    const { world, host, volumeId } = await givenData();
    const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
    const sources = [
      { case: "snapshot" as const, value: { snapshotId: snapshot?.snapshotId ?? "" } },
      { case: "volume" as const, value: { volumeId } },
    ];
    host.filesystems.format = async () => expect.unreachable("formatted again");

    for (const type of sources) {
      const { volume } = await world.controller.createVolume({
        name: `of ${type.case}`,
        volumeCapabilities: [mountCapability()],
        volumeContentSource: { type },
      });
      const copy = volume?.volumeId ?? "";
      Object.assign(host.image(imageOf(copy)), { content: { kind: "blank" }, data: new Map() });
      expect(await codeOf(staged(world, copy))).toBe("FAILED_PRECONDITION");
    }
  });
});

describe("mkfs", () => {
  test("that reports success and wrote nothing is not believed, and is run again by the next stage", async () => {
    const host = createFakeHost();
    const real = { ...host.filesystems };
    host.filesystems.format = async () => undefined;
    const world = await given({}, host);
    const volumeId = await createdVolume(world, "a");

    await expect(staged(world, volumeId)).rejects.toMatchObject({
      code: "INTERNAL",
      detail: expect.stringContaining("reported success") as string,
    });
    Object.assign(host.filesystems, real);

    expect(await codeOf(staged(world, volumeId))).toBe("OK");
  });

  test("that was cut off is repeated, by another node too; not once the filesystem was mounted by somebody", async () => {
    const host = createFakeHost();
    const real = { ...host.filesystems };
    host.filesystems.format = async (device, type) => {
      await real.format(device, type);
      throw new HostError("TimedOut", "mkfs.ext4 took longer than 60000 ms");
    };
    const world = await given({}, host);
    const [cut, used] = [await createdVolume(world, "cut"), await createdVolume(world, "used")];
    for (const id of [cut, used]) {
      expect(await codeOf(staged(world, id))).toBe("ABORTED");
      expect(await codeOf(world.controller.createSnapshot({ name: id, sourceVolumeId: id }))).toBe(
        "FAILED_PRECONDITION",
      );
    }
    const image = host.image(imageOf(used));
    image.everMounted = true;
    image.data.set("diary", "precious");
    Object.assign(host.filesystems, real);
    host.image(imageOf(cut)).content = { kind: "other", what: "half a filesystem" };

    await published(world, used);
    expect(host.readData(TARGET, "diary")).toBe("precious");
    await released(world, used);
    expect(await codeOf(staged(world, cut))).toBe("OK");
  });
});

describe("the plan", () => {
  const formatted: FilesystemRecord = { phase: "formatted", type: "ext4", since: "then" };
  const begun: FilesystemRecord = { phase: "formatting", type: "ext4", since: "then", image: "disk/1" };
  const fs = (type: string, neverMounted = false): Content => ({ kind: "filesystem", type, neverMounted });
  const blank: Content = { kind: "blank" };
  const other: Content = { kind: "other", what: "a dos partition table" };
  const here = { isMounted: false, image: "disk/1" as string | undefined };

  test.each<[string, FilesystemRecord | undefined, Content, Partial<FilesystemView>, string]>([
    ["new and blank", undefined, blank, {}, "format blank"],
    ["new, with a filesystem", undefined, fs("ext4"), {}, "use ext4"],
    ["new, with one never mounted", undefined, fs("ext4", true), {}, "use ext4"],
    ["new, with another type than asked for", undefined, fs("xfs"), {}, "refuse"],
    ["new, with a foreign filesystem", undefined, fs("btrfs"), {}, "refuse"],
    ["new, with a partition table", undefined, other, {}, "refuse"],
    ["new and blank, yet mounted", undefined, blank, { isMounted: true }, "refuse"],
    ["new and blank, without an image", undefined, blank, { image: undefined }, "refuse"],
    ["formatted", formatted, fs("ext4"), {}, "use ext4"],
    ["formatted, and mounted", formatted, fs("ext4"), { isMounted: true }, "use ext4"],
    ["formatted, now blank", formatted, blank, {}, "refuse"],
    ["formatted, now of another type", formatted, fs("xfs"), {}, "refuse"],
    ["formatted, now something else", formatted, other, {}, "refuse"],
    ["mkfs begun, still blank", begun, blank, {}, "format intent"],
    ["mkfs begun, half of it there", begun, other, {}, "format intent"],
    ["mkfs begun, all of it there", begun, fs("ext4", true), {}, "format intent"],
    ["mkfs begun, and mounted since", begun, fs("ext4"), {}, "use ext4"],
    ["mkfs begun, and mounted now", begun, fs("ext4", true), { isMounted: true }, "refuse"],
    ["mkfs begun on another file", begun, other, { image: "disk/2" }, "refuse"],
    ["mkfs begun on another file, blank now", begun, blank, { image: "disk/2" }, "refuse"],
  ])("%s", (_, known, content, rest, expected) => {
    const view = { ...here, content, wanted: { type: "ext4", named: true }, ...rest } as const;

    const plan = planFilesystem(known, view);

    const said = { use: "type", format: "proof", refuse: "" }[plan.kind];
    expect(`${plan.kind} ${(plan as unknown as Record<string, string>)[said] ?? ""}`.trim()).toBe(expected);
  });
});
