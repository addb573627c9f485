import { describe, expect, test } from "vitest";
import { DRIVER } from "../../sim/cluster-objects.ts";
import { given, NODE_ROOT, type NodePodSketch, type NodeWorld } from "../../sim/node-world.ts";

/**
 * One disk, and two PersistentVolumes that lead to it one after the other: what a pod has of it lies where the name of its own
 * says, and is taken down there.
 */

const CASES = ["Filesystem", "Block"] as const;

function worldOf(mode: (typeof CASES)[number]) {
  const csi = { driver: DRIVER, volumeHandle: "disk" };
  const sketch = { handle: "disk", source: { volumeMode: mode, csi } };
  return given({ volumes: { before: sketch, after: sketch }, pods: { old: podOf(mode, "before") } });
}

function podOf(mode: (typeof CASES)[number], label: string): NodePodSketch {
  const volumeDevices = [{ name: label, devicePath: "/dev/xvda" }];
  return {
    uses: [label],
    ...(mode === "Block" && { containers: [{ name: "app", image: "x", volumeDevices }] }),
  };
}

async function leftovers(world: NodeWorld): Promise<string[]> {
  const found: string[] = await world.mountPoints();
  for (const directory of [
    `${NODE_ROOT}/pods`,
    `${NODE_ROOT}/mooring/volumes`,
    `${NODE_ROOT}/plugins/kubernetes.io/csi/volumeDevices/staging`,
    `${NODE_ROOT}/plugins/kubernetes.io/csi/volumeDevices/publish`,
  ])
    for (const { name } of (await world.machine.files.list(directory)) ?? [])
      found.push(`${directory}/${name}`);
  return found;
}

describe.each(CASES)("a disk that got another name, %s", (mode) => {
  test("the pod that comes with the new name gets it after the old one went, and leaves nothing", async () => {
    const world = await worldOf(mode);
    await world.startPod("new", podOf(mode, "after"));
    await world.runFor(5_000);

    await world.removePod("old");
    await world.runFor(5_000);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("new")).size).toBe(1);

    await world.removePod("new");
    await world.runFor(5_000);
    expect(await leftovers(world)).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });

  test("and the agent is restarted between the two and afterwards: it is taken down where it lies", async () => {
    const world = await worldOf(mode);
    await world.startPod("new", podOf(mode, "after"));
    await world.settle();
    await world.stop();
    await world.removePod("old");

    world.start();
    await world.runFor(5_000);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("new")).size).toBe(1);
    await world.stop();
    await world.removePod("new");

    world.start();
    await world.runFor(5_000);
    expect(await leftovers(world)).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });
});
