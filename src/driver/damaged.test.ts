import { describe, expect, test } from "vitest";
import { nodeDirectoryName } from "./context.ts";
import { knownAs } from "./ephemeral.ts";
import type { FakeHost } from "./fake-host.testing.ts";
import {
  codeOf,
  createdVolume,
  given,
  mountCapability,
  published,
  released,
  staged,
  STAGING,
  STATE,
  TARGET,
} from "./stage.testing.ts";

/** Data goes with DeleteVolume or DeleteSnapshot and a valid record, never because a record is missing or unreadable. */

const volumePath = (id: string) => `${STATE}/volumes/${id}`;
const snapshotPath = (id: string) => `${STATE}/snapshots/${id}`;
const ephemeralPath = (id: string) => `${STATE}/ephemeral/${nodeDirectoryName("node-1")}/${id}`;

/** Every way a record can be lost. */
const LOSSES: readonly [string, (host: FakeHost, path: string) => Promise<void>][] = [
  ["missing", (host, path) => host.files.removeFile(path)],
  ["empty", (host, path) => host.files.writeDurable(path, "")],
  [
    "cut short",
    async (host, path) => host.files.writeDurable(path, ((await host.files.read(path)) ?? "").slice(0, 40)),
  ],
  ["of another object", (host, path) => host.files.writeDurable(path, '{"id":"vol-0","phase":"ready"}')],
  [
    "unreadable",
    async (host, path) => {
      const { files } = host;
      const read = files.read.bind(files);
      Object.assign(files, {
        read: async (one: string) => {
          if (one === path) throw new Error("EIO");
          return read(one);
        },
      });
    },
  ],
];

describe.each(LOSSES)("a record that is %s", (name, lose) => {
  test("a mounted volume keeps its image and its mount over a restart; it is listed, not deleted, and can be let go", async () => {
    const world = await given();
    const [volumeId, other] = [await createdVolume(world, "a"), await createdVolume(world, "other")];
    await published(world, volumeId);
    world.host.writeData(TARGET, "diary", "precious");
    await lose(world.host, `${volumePath(volumeId)}/meta.json`);

    const after = await world.restart();

    expect(after.host.readData(TARGET, "diary")).toBe("precious");
    const { entries } = await after.controller.listVolumes({});
    expect(
      entries.find(({ volume }) => volume?.volumeId === volumeId)?.status?.volumeCondition?.abnormal,
    ).toBe(true);
    expect(after.driver.counts()).toMatchObject({ volumes: 1, damaged: 1 });
    expect(await codeOf(after.controller.deleteVolume({ volumeId }))).not.toBe("OK");
    expect(await codeOf(after.controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" }))).not.toBe(
      "OK",
    );
    await after.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET });
    await after.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING });
    const again = await after.restart();
    expect(await again.host.loops.list()).toEqual([]);
    expect(again.host.image(`${volumePath(volumeId)}/image.raw`).data.get("diary")).toBe("precious");
    await again.controller.deleteVolume({ volumeId: other });
  });

  test("a snapshot keeps its image, and is neither deleted nor restored", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a");
    const { snapshot } = await world.controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });
    const snapshotId = snapshot?.snapshotId ?? "";
    await lose(world.host, `${snapshotPath(snapshotId)}/meta.json`);

    const after = await (await world.restart()).restart();

    expect(await after.host.files.stat(`${snapshotPath(snapshotId)}/image.raw`)).toBeDefined();
    expect(await codeOf(after.controller.deleteSnapshot({ snapshotId }))).not.toBe("OK");
    expect(await codeOf(after.controller.getSnapshot({ snapshotId }))).not.toBe("OK");
    expect(after.driver.counts()).toMatchObject({ snapshots: 0, damaged: 1 });
  });

  test("an ephemeral volume is let go and its image kept; its pod's next one does not overwrite it", async () => {
    const world = await given();
    const pod = { volumeId: "csi-1", targetPath: TARGET };
    const publish = {
      ...pod,
      volumeCapability: mountCapability(),
      volumeContext: { "csi.storage.k8s.io/ephemeral": "true" },
    };
    await world.node.nodePublishVolume(publish);
    world.host.writeData(TARGET, "diary", "precious");
    const path = ephemeralPath(knownAs("csi-1"));
    await lose(world.host, `${path}/meta.json`);

    const after = await world.restart();

    expect(await codeOf(after.node.nodeUnpublishVolume(pod))).toBe(name === "unreadable" ? "INTERNAL" : "OK");
    expect(await codeOf(after.node.nodePublishVolume(publish))).not.toBe("OK");
    expect(after.host.image(`${path}/image.raw`).data.get("diary")).toBe("precious");
    expect(await after.host.mounts.list()).toEqual([]);
  });
});

test("a record lost while the driver runs: DeleteVolume refuses, and the image stays", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a");
  await world.host.files.removeFile(`${volumePath(volumeId)}/meta.json`);

  expect(await codeOf(world.controller.deleteVolume({ volumeId }))).toBe("FAILED_PRECONDITION");
  expect(await codeOf(staged(world, volumeId))).toBe("FAILED_PRECONDITION");
  expect(await world.host.files.stat(`${volumePath(volumeId)}/image.raw`)).toBeDefined();
});

test("a volume whose directory somebody removed is forgotten by DeleteVolume", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a");
  for (const name of ["meta.json", "image.raw"])
    await world.host.files.removeFile(`${volumePath(volumeId)}/${name}`);
  await world.host.files.removeDirectory(volumePath(volumeId));

  await world.controller.deleteVolume({ volumeId });

  expect((await world.controller.listVolumes({})).entries).toEqual([]);
});

test("a node's record that cannot be understood: the volume may be staged there, and is neither deleted nor detached", async () => {
  const world = await given({ nodes: ["node-2"] });
  const volumeId = await createdVolume(world, "a");
  await world.host.files.makeDirectory(`${STATE}/node/${nodeDirectoryName("node-2")}`, 0o700);
  const path = `${STATE}/node/${nodeDirectoryName("node-2")}/${volumeId}.json`;
  await world.host.files.writeDurable(path, "{");

  expect(await codeOf(world.controller.deleteVolume({ volumeId }))).toBe("FAILED_PRECONDITION");
  expect(await codeOf(world.controller.controllerUnpublishVolume({ volumeId, nodeId: "" }))).toBe(
    "FAILED_PRECONDITION",
  );
  await world.host.files.removeFile(path);
  await world.controller.deleteVolume({ volumeId });
});

test("a group whose record is damaged is kept with its members", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a");
  const { groupSnapshot } = await world.group.createVolumeGroupSnapshot({
    name: "g",
    sourceVolumeIds: [volumeId],
  });
  const groupSnapshotId = groupSnapshot?.groupSnapshotId ?? "";
  await world.host.files.writeDurable(`${STATE}/groups/${groupSnapshotId}.json`, "{");

  const after = await world.restart();

  expect(await codeOf(after.group.deleteVolumeGroupSnapshot({ groupSnapshotId }))).toBe(
    "FAILED_PRECONDITION",
  );
  expect(after.driver.counts()).toMatchObject({ snapshots: 1, damaged: 1 });
  expect(await after.driver.damaged()).toEqual([
    {
      kind: "group snapshot",
      id: groupSnapshotId,
      path: `${STATE}/groups/${groupSnapshotId}`,
      why: "its record cannot be understood",
    },
  ]);
});

test("what a kill leaves without data is not damage: an empty directory goes", async () => {
  const world = await given();
  const id = "vol-00000000-0000-4000-8000-000000000000";
  await world.host.files.makeDirectory(volumePath(id), 0o700);

  const after = await world.restart();

  expect(after.host.tree(`${STATE}/volumes`)).toEqual([]);
  expect(after.driver.counts().damaged).toBe(0);
});

test("a name whose volume is damaged gets a volume of its own; the damaged one stays as it is", async () => {
  const world = await given();
  const volumeId = await createdVolume(world, "a");
  await published(world, volumeId);
  world.host.writeData(TARGET, "diary", "precious");
  await released(world, volumeId);
  await world.host.files.removeFile(`${volumePath(volumeId)}/meta.json`);

  const after = await world.restart();
  const next = await createdVolume(after, "a");

  expect(next).not.toBe(volumeId);
  expect(after.host.image(`${volumePath(volumeId)}/image.raw`).data.get("diary")).toBe("precious");
});
