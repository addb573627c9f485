import { expect, test } from "vitest";
import { createFakeHost } from "./fake-host.testing.ts";
import { LOCK_WAIT_MS } from "./locks.ts";
import { GIB, MIB } from "./options.ts";
import {
  blockCapability,
  codeOf,
  createdVolume,
  given,
  mountCapability,
  published,
  STATE,
  TARGET,
} from "./stage.testing.ts";

test("capacity: what is free, the largest and the smallest volume; nothing elsewhere, and never less than nothing", async () => {
  const world = await given({ maxVolumeBytes: 10n * GIB });
  const ask = async (request: object = {}) => {
    const found = await world.controller.getCapacity(request);
    return [found.availableCapacity, found.maximumVolumeSize, found.minimumVolumeSize];
  };
  const at = (node: string) => ({
    accessibleTopology: { segments: { "Topology.loop.csi.mooring.dev/node": node } },
  });

  expect(await ask()).toEqual([50n * GIB, 10n * GIB, 16n * MIB]);
  expect(await ask(at("node-1"))).toEqual([50n * GIB, 10n * GIB, 16n * MIB]);
  expect(await ask(at("node-9"))).toEqual([0n, 0n, 16n * MIB]);
  expect(await ask({ volumeCapabilities: [mountCapability({ fsType: "xfs" })] })).toEqual([
    50n * GIB,
    10n * GIB,
    300n * MIB,
  ]);
  expect(await ask({ volumeCapabilities: [blockCapability()] })).toEqual([50n * GIB, 10n * GIB, 4_096n]);
  world.host.pool.freeBytes = 1n * GIB;
  expect(await ask()).toEqual([1n * GIB, 1n * GIB, 16n * MIB]);
  expect(await ask({ parameters: { kind: "unknown" } })).toEqual([0n, 0n, 16n * MIB]);
});

test("pages have an order of their own: a token stays good when its entry, and others, have gone", async () => {
  const world = await given();
  await Promise.all(["a", "b", "c", "d", "e"].map((name) => createdVolume(world, name)));
  const list = async (request: object) => {
    const { entries, nextToken } = await world.controller.listVolumes(request);
    return { ids: entries.map(({ volume }) => volume?.volumeId ?? ""), nextToken };
  };
  const all = (await list({})).ids;
  const first = await list({ maxEntries: 2 });

  for (const volumeId of [first.ids[1]!, all[2]!]) await world.controller.deleteVolume({ volumeId });
  const rest = await list({ startingToken: first.nextToken });

  expect(all).toEqual([...all].sort());
  expect(first.ids).toEqual(all.slice(0, 2));
  expect(rest).toEqual({ ids: all.slice(3), nextToken: "" });
});

test("a snapshot that is being restored is not deleted under it", async () => {
  const host = createFakeHost();
  const world = await given({}, host);
  const volumeId = await createdVolume(world, "a");
  await published(world, volumeId);
  host.writeData(TARGET, "diary", "precious");
  const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
  const snapshotId = snapshot?.snapshotId ?? "";
  const copy = host.images.copy.bind(host.images);
  let letGo = (): void => undefined;
  host.images.copy = async (from, to) => {
    await new Promise<void>((resolve) => (letGo = resolve));
    await copy(from, to);
  };
  const restoring = world.controller.createVolume({
    name: "r",
    volumeCapabilities: [mountCapability()],
    volumeContentSource: { type: { case: "snapshot", value: { snapshotId } } },
  });
  await world.scheduler.runFor(1);

  const removed = codeOf(world.controller.deleteSnapshot({ snapshotId }));
  await world.scheduler.runFor(LOCK_WAIT_MS);

  expect(await removed).toBe("ABORTED");
  letGo();
  const restored = (await restoring).volume?.volumeId ?? "";
  expect(host.image(`${STATE}/volumes/${restored}/image.raw`).data.get("diary")).toBe("precious");
  expect(await codeOf(world.controller.deleteSnapshot({ snapshotId }))).toBe("OK");
});

test("a thick volume stays thick when it grows", async () => {
  const world = await given();
  const { volume } = await world.controller.createVolume({
    name: "a",
    volumeCapabilities: [mountCapability()],
    capacityRange: { requiredBytes: 64n * MIB },
    parameters: { provisioning: "thick" },
  });
  const volumeId = volume?.volumeId ?? "";

  await world.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: 96n * MIB } });

  expect(await world.host.files.stat(`${STATE}/volumes/${volumeId}/image.raw`)).toMatchObject({
    sizeBytes: 96n * MIB,
    allocatedBytes: 96n * MIB,
  });
});
