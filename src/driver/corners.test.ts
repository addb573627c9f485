import { expect, test } from "vitest";
import { createFaultyHost } from "./faulty-host.testing.ts";
import { HostError } from "./host.ts";
import { MIB } from "./options.ts";
import {
  codeOf,
  createdVolume,
  given,
  mountCapability,
  openPeer,
  published,
  released,
  STATE,
  TARGET,
} from "./stage.testing.ts";

/** A failure in one place that would have cost data, or everybody, in another. */

const imageOf = (volumeId: string) => `${STATE}/volumes/${volumeId}/image.raw`;

test("an expansion that could not be recorded, then a smaller one: nothing that was written meanwhile is cut off, nor in a copy", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a", { sizeBytes: 64n * MIB });
  const expand = (size: bigint) =>
    world.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: size * MIB } });
  const { files } = world.host.room;
  world.host.room.files = 0;
  expect(await codeOf(expand(256n))).toBe("RESOURCE_EXHAUSTED");
  world.host.room.files = files;
  // Staged, the filesystem grows to the size of its device.
  await published(world, volumeId);
  await released(world, volumeId);
  expect(world.host.image(imageOf(volumeId)).fsBytes).toBe(256n * MIB);

  const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
  const { volume: copy } = await world.controller.createVolume({
    name: "copy",
    volumeCapabilities: [mountCapability()],
    volumeContentSource: { type: { case: "snapshot", value: { snapshotId: snapshot?.snapshotId ?? "" } } },
  });
  const { capacityBytes } = await expand(128n);

  expect(capacityBytes).toBe(256n * MIB);
  for (const id of [volumeId, copy?.volumeId ?? ""])
    expect((await world.host.files.stat(imageOf(id)))?.sizeBytes).toBe(256n * MIB);
});

test("a creation that failed and could not be undone: asked again, it is made anew, never answered from what is left", async () => {
  const world = await given();
  const sourceVolumeId = await createdVolume(world, "source");
  const refuse = () => Promise.reject(new HostError("Failed", "EIO"));
  const { files, images } = world.host;
  const broken = openPeer(
    {
      ...world.host,
      files: { ...files, removeFile: refuse },
      images: { ...images, create: refuse, copy: refuse },
    },
    world.clock,
  );
  await broken.driver.recover();
  const asked = { name: "s", sourceVolumeId };
  expect(await codeOf(createdVolume(broken, "a"))).not.toBe("OK");
  expect(await codeOf(createdVolume(broken, "a"))).not.toBe("OK");
  expect(await codeOf(broken.controller.createSnapshot(asked))).not.toBe("OK");
  expect(await codeOf(broken.controller.createSnapshot(asked))).not.toBe("OK");

  const whole = openPeer(world.host, world.clock);
  await whole.driver.recover();
  const volumeId = await createdVolume(whole, "a");
  const { snapshot } = await whole.controller.createSnapshot(asked);

  expect((await files.stat(imageOf(volumeId)))?.kind).toBe("file");
  expect(snapshot?.readyToUse).toBe(true);
});

const pod = {
  volumeId: "csi-1",
  targetPath: TARGET,
  volumeCapability: mountCapability(),
  volumeContext: { "csi.storage.k8s.io/ephemeral": "true" },
};

test("after a reboot a pod's own volume cannot be published again for some time: its data waits", async () => {
  const world = await given();
  await world.node.nodePublishVolume(pod);
  world.host.writeData(TARGET, "scratch", "precious");
  world.host.reboot();
  const bind = () => Promise.reject(new HostError("Failed", "mount exited with 32"));
  const failing = openPeer({ ...world.host, mounts: { ...world.host.mounts, bind } }, world.clock);
  await failing.driver.recover();
  for (let again = 0; again < 3; again++)
    expect(await codeOf(failing.node.nodePublishVolume(pod))).toBe("INTERNAL");

  const after = await world.restart();
  await after.node.nodePublishVolume(pod);

  expect(world.host.readData(TARGET, "scratch")).toBe("precious");
  await after.node.nodeUnpublishVolume(pod);
  expect(world.host.tree(STATE).filter((path) => /eph-/.test(path))).toEqual([]);
});

test("a volume whose directory cannot be looked at stops no start", async () => {
  const world = await given();
  const [broken, whole] = [await createdVolume(world, "a"), await createdVolume(world, "b")];
  const { host } = createFaultyHost(world.host);
  const stat = (path: string) => {
    if (path.includes(broken)) throw new HostError("Failed", `look at ${path}: EIO`);
    return world.host.files.stat(path);
  };
  const peer = openPeer({ ...host, files: { ...host.files, stat: async (path) => stat(path) } }, world.clock);

  await peer.driver.recover();

  await peer.controller.deleteVolume({ volumeId: whole });
});

for (const phase of ["reaby", "", "archived"])
  test(`a record in a phase that is not known, "${phase}", is damaged: a start removes nothing of it`, async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    const path = `${STATE}/volumes/${volumeId}/meta.json`;
    const text = (await world.host.files.read(path)) ?? "";
    await world.host.files.writeDurable(path, text.replace('"ready"', `"${phase}"`));

    const after = await world.restart();

    expect(await after.host.files.stat(imageOf(volumeId))).toBeDefined();
    expect(after.driver.counts()).toMatchObject({ volumes: 0, damaged: 1 });
  });
