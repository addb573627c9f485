import { expect, test } from "vitest";
import { NodeServiceCapability_RPC_Type as Rpc } from "../../csi/gen/csi_pb.ts";
import { given } from "../../sim/node-world.ts";

/** A driver whose next version stages volumes, which the one before did not. */

const RAW = {
  source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "v" } },
} as const;
const containers = [{ name: "app", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] }];

for (const [what, volume, pod] of [
  ["a volume", {}, { uses: ["v"] }],
  ["a raw volume", RAW, { uses: ["v"], containers }],
] as const)
  test(`${what} that was set up without staging is staged once its driver does that`, async () => {
    const world = await given({ volumes: { v: volume } });
    world.driver.capabilities = [];
    world.driver.fail("publish", "INVALID_ARGUMENT", { times: 99 });
    await world.startPod("web", pod);
    await world.settle();

    world.driver.capabilities = [Rpc.STAGE_UNSTAGE_VOLUME];
    world.driver.heal();
    world.registerDriver();
    world.takeCalls();
    await world.runFor(300_000);
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);

    await world.removePod("web");
    await world.runFor(10_000);
    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
    expect(world.inUse()).toEqual([]);
  });
