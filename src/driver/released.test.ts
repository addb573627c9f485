import { describe, expect, test } from "vitest";
import {
  blockCapability,
  codeOf,
  createdVolume,
  given,
  mountCapability,
  published,
  released,
  staged,
  STAGING,
  TARGET,
} from "./stage.testing.ts";

/** OK of unpublish and unstage means that nothing of the pool is at the path any more. */

describe.each([
  ["mount", mountCapability()],
  ["block", blockCapability()],
] as const)("a %s volume", (_, capability) => {
  for (const [what, bringUp] of [
    ["staged", staged],
    ["published", published],
  ] as const) {
    test(`${what} by a node that was started under another name since: neither call answers OK, both say whose it is, nothing changes; its own node takes it down`, async () => {
      const world = await given();
      const volumeId = await createdVolume(world, "a", { capability });
      await bringUp(world, volumeId, { capability });
      const before = [await world.host.mounts.list(), await world.host.loops.list()];

      const renamed = await world.restart({ nodeId: "node-9" });
      const unstage = renamed.node.nodeUnstageVolume({ volumeId, stagingTargetPath: STAGING });
      const unpublish = renamed.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET });

      await expect(unstage).rejects.toThrow(/FAILED_PRECONDITION.*node "node-1".*--nodeid "node-1"/s);
      expect(await codeOf(unpublish)).toBe(what === "published" ? "FAILED_PRECONDITION" : "OK");
      expect([await world.host.mounts.list(), await world.host.loops.list()]).toEqual(before);
      await released(await renamed.restart({ nodeId: "node-1" }), volumeId);
      expect([await world.host.mounts.list(), await world.host.loops.list()]).toEqual([[], []]);
    });
  }

  test("that no record names any more: no OK; a restart adopts it, and it can be taken down", async () => {
    const world = await given();
    const volumeId = await createdVolume(world, "a", { capability });
    const bystander = await world.restart({ nodeId: "node-9" });
    await published(world, volumeId, { capability });
    for (const path of world.host.tree("/state/node"))
      if (path.endsWith(".json")) await world.host.files.removeFile(path);

    const unpublish = () => bystander.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET });
    await expect(unpublish()).rejects.toThrow(/FAILED_PRECONDITION.*restart this driver/s);
    expect((await world.host.mounts.list()).map(({ path }) => path)).toContain(TARGET);

    const next = await world.restart();
    await released(next, volumeId);
    expect([await world.host.mounts.list(), await world.host.loops.list()]).toEqual([[], []]);
  });
});

test("an ephemeral volume of a node that was started under another name since is not answered with OK", async () => {
  const world = await given();
  const volumeId = "csi-of-a-pod";
  await world.node.nodePublishVolume({
    volumeId,
    targetPath: TARGET,
    volumeCapability: mountCapability(),
    volumeContext: { "csi.storage.k8s.io/ephemeral": "true" },
  });

  const renamed = await world.restart({ nodeId: "node-9" });

  expect(await codeOf(renamed.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET }))).toBe(
    "FAILED_PRECONDITION",
  );
  const back = await renamed.restart({ nodeId: "node-1" });
  await back.node.nodeUnpublishVolume({ volumeId, targetPath: TARGET });
  expect([await back.host.mounts.list(), await back.host.loops.list()]).toEqual([[], []]);
});

test("what somebody else mounted there, or another volume of this node, is none of this volume's", async () => {
  const world = await given();
  const [one, two] = [await createdVolume(world, "one"), await createdVolume(world, "two")];
  await published(world, one);

  expect(await codeOf(world.node.nodeUnpublishVolume({ volumeId: two, targetPath: TARGET }))).toBe("OK");
  expect(await codeOf(world.node.nodeUnstageVolume({ volumeId: two, stagingTargetPath: STAGING }))).toBe(
    "OK",
  );

  expect(await world.host.mounts.list()).toHaveLength(2);
});
