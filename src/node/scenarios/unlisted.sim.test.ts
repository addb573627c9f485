import { describe, expect, test } from "vitest";
import { given, NODE, type NodeWorld } from "../../sim/node-world.ts";

/**
 * A controller that takes a volume off a node takes it off `volumesAttached` first, and deletes its VolumeAttachment after that. A
 * machine that comes back in between finds the volume on its disk, and the VolumeAttachment attached: nothing of it is mounted
 * before the node lists it again.
 */

const RAW = {
  source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "v" } },
} as const;
const containers = [{ name: "app", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] }];

/** The machine lost its power with the pod's volume mounted, and comes back. */
async function rebooted(world: NodeWorld): Promise<void> {
  await world.stop();
  for (const path of (await world.mountPoints()).reverse()) await world.machine.mounts.unmount(path);
  world.takeCalls();
}

function mounting(calls: readonly string[]): string[] {
  return calls.filter((call) => /^(stage|publish) /.test(call));
}

describe("unlisted while the machine was down, and its VolumeAttachment is still there", () => {
  for (const [what, volume, pod] of [
    ["a filesystem", {}, { uses: ["v"] }],
    ["a raw volume", RAW, { uses: ["v"], containers }],
  ] as const) {
    test(`${what}: not staged for the same pod before it is listed again`, async () => {
      const world = await given({ volumes: { v: volume }, pods: { web: pod } });
      await rebooted(world);
      await world.setAttached(NODE, []);

      world.start();
      await world.runFor(60_000);
      expect(mounting(world.takeCalls())).toEqual([]);
      expect(world.inUse()).toEqual(["v"]);

      await world.attach("v");
      await world.runFor(5_000);
      expect(mounting(world.takeCalls())).toEqual(["stage v", "publish v web"]);
    });

    test(`${what}: not staged for the next pod before it is listed again`, async () => {
      const world = await given({ volumes: { v: volume }, pods: { web: pod } });
      await rebooted(world);
      await world.setAttached(NODE, []);
      await world.removePod("web");
      await world.startPod("next", pod);

      world.start();
      await world.runFor(60_000);
      expect(mounting(world.takeCalls())).toEqual([]);
      expect(world.inUse()).toEqual(["v"]);

      await world.attach("v");
      await world.runFor(5_000);
      expect(mounting(world.takeCalls())).toEqual(["stage v", "publish v next"]);
    });
  }

  test("where the driver stages nothing: not published before it is listed again", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
    world.driver.capabilities = [];
    world.start();
    await world.runFor(5_000);
    expect(mounting(world.takeCalls())).toEqual(["publish v web"]);
    await rebooted(world);
    await world.setAttached(NODE, []);

    world.start();
    await world.runFor(60_000);
    expect(mounting(world.takeCalls())).toEqual([]);

    await world.attach("v");
    await world.runFor(5_000);
    expect(mounting(world.takeCalls())).toEqual(["publish v web"]);
  });

  test("what is mounted stays with its pod, listed or not", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    world.takeCalls();

    await world.setAttached(NODE, []);
    await world.runFor(60_000);

    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual(["v"]);
  });
});
