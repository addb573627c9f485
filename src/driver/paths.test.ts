import { describe, expect, test } from "vitest";
import {
  blockCapability,
  codeOf,
  createdVolume,
  given,
  mountCapability,
  type World,
} from "./stage.testing.ts";

/** One place, many spellings: whichever a call uses, it is about the same volume. */

const SPELLINGS: readonly (readonly [string, (path: string) => string])[] = [
  ["as it is", (path) => path],
  ["a slash at its end", (path) => `${path}/`],
  ["slashes at its end", (path) => `${path}///`],
  ["doubled slashes", (path) => path.replaceAll("/", "//")],
  ["dots between", (path) => path.replaceAll("/", "/./")],
  ["a dot at its end", (path) => `${path}/.`],
  ["a link on the way", (path) => path.replace("/kubelet/", "/link/")],
];

async function machine(): Promise<World> {
  const world = await given({ volumeHealth: true });
  world.host.makeSymlink("/link", "/kubelet");
  return world;
}

const NOTHING = { stage: "/kubelet/stage", pods: "/kubelet/pods" };

describe.each([
  ["mount", mountCapability()],
  ["block", blockCapability()],
] as const)("a %s volume", (_, volumeCapability) => {
  for (const [up, spelledUp] of SPELLINGS) {
    test(`published with ${up} is found and taken down by every other spelling`, async () => {
      const world = await machine();
      const { node, controller, host } = world;
      const volumeId = await createdVolume(world, "a", { capability: volumeCapability });
      await controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability });

      for (const [down, spelledDown] of SPELLINGS) {
        const at = (spelled: (path: string) => string) => ({
          volumeId,
          stagingTargetPath: spelled(NOTHING.stage),
          targetPath: spelled(`${NOTHING.pods}/target`),
          volumeCapability,
        });
        await node.nodeStageVolume(at(spelledUp));
        await node.nodePublishVolume(at(spelledUp));
        const { stagingTargetPath, targetPath } = at(spelledDown);
        await node.nodeStageVolume(at(spelledDown));
        await node.nodePublishVolume(at(spelledDown));
        const mounts = await host.mounts.list();
        expect(mounts.length, down).toBe(volumeCapability.accessType?.case === "block" ? 1 : 2);
        for (const volumePath of [targetPath, stagingTargetPath]) {
          await node.nodeGetVolumeStats({ volumeId, volumePath });
          await node.nodeExpandVolume({ volumeId, volumePath });
        }
        const health = { volumeId, stagingTargetPath, volumePublishPath: targetPath };
        await node.nodeGetVolumeHealth(health);

        await node.nodeUnpublishVolume({ volumeId, targetPath });
        await node.nodeUnstageVolume({ volumeId, stagingTargetPath });

        expect(await host.mounts.list(), down).toEqual([]);
        expect(await host.loops.list(), down).toEqual([]);
        expect(host.tree("/kubelet"), down).toEqual([NOTHING.pods, NOTHING.stage]);
      }
    });
  }
});

test("an ephemeral volume published in one spelling goes in another", async () => {
  for (const [up, spelledUp] of SPELLINGS)
    for (const [down, spelledDown] of SPELLINGS) {
      const world = await machine();
      const target = `${NOTHING.pods}/target`;
      const volumeId = "csi-of-a-pod";
      await world.node.nodePublishVolume({
        volumeId,
        targetPath: spelledUp(target),
        volumeCapability: mountCapability(),
        volumeContext: { "csi.storage.k8s.io/ephemeral": "true" },
      });

      await world.node.nodeUnpublishVolume({ volumeId, targetPath: spelledDown(target) });

      expect(await world.host.mounts.list(), `${up}, ${down}`).toEqual([]);
      expect(await world.host.loops.list(), `${up}, ${down}`).toEqual([]);
    }
});

test("a record of an earlier version, which holds what the caller wrote, can be taken down", async () => {
  const world = await machine();
  const volumeId = await createdVolume(world, "a");
  const volumeCapability = mountCapability();
  await world.controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability });
  const targetPath = `${NOTHING.pods}/target`;
  const request = { volumeId, stagingTargetPath: NOTHING.stage, targetPath, volumeCapability };
  await world.node.nodeStageVolume(request);
  await world.node.nodePublishVolume(request);
  const path = world.host.tree("/state/node").find((name) => name.endsWith(".json")) ?? "";
  const text = (await world.host.files.read(path)) ?? "";
  const old = text.replace(`"${targetPath}"`, `"${targetPath}/"`).replace(/"device":\{[^}]*\},?/, "");
  expect(old).not.toBe(text);
  await world.host.files.writeDurable(path, old);

  const { node, host } = await world.restart();
  await node.nodeUnpublishVolume({ volumeId, targetPath });
  await node.nodeUnstageVolume({ volumeId, stagingTargetPath: NOTHING.stage });

  expect([await host.mounts.list(), await host.loops.list()]).toEqual([[], []]);
});

test("a step back is refused by every call that mounts, and nothing is there for those that ask", async () => {
  const world = await machine();
  const volumeId = await createdVolume(world, "a");
  const volumeCapability = mountCapability();
  const bad = "/kubelet/pods/../stage";
  const good = NOTHING.stage;
  const { node } = world;
  const codes = await Promise.all([
    codeOf(node.nodeStageVolume({ volumeId, stagingTargetPath: bad, volumeCapability })),
    codeOf(node.nodePublishVolume({ volumeId, stagingTargetPath: bad, targetPath: good, volumeCapability })),
    codeOf(node.nodePublishVolume({ volumeId, stagingTargetPath: good, targetPath: bad, volumeCapability })),
    codeOf(node.nodeUnpublishVolume({ volumeId, targetPath: bad })),
    codeOf(node.nodeUnstageVolume({ volumeId, stagingTargetPath: bad })),
    codeOf(node.nodeGetVolumeStats({ volumeId, volumePath: bad })),
    codeOf(node.nodeExpandVolume({ volumeId, volumePath: bad })),
  ]);

  expect(codes).toEqual([...Array<string>(5).fill("INVALID_ARGUMENT"), "NOT_FOUND", "NOT_FOUND"]);
});
