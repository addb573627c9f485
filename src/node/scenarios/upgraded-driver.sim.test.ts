import { expect, test } from "vitest";
import { NodeServiceCapability_RPC_Type as Rpc } from "../../csi/gen/csi_pb.ts";
import { given } from "../../sim/node-world.ts";

/** Drivers of which one version stages volumes, and the one before or behind it does not. */

const RAW = {
  source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "v" } },
} as const;
const containers = [{ name: "app", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] }];

for (const [what, volume, pod] of [
  ["a volume", {}, { uses: ["v"] }],
  ["a raw volume", RAW, { uses: ["v"], containers }],
] as const) {
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

  test(`${what} whose staging got no answer from the version before is staged once its driver does that again`, async () => {
    const world = await given({ volumes: { v: volume } });
    world.driver.capabilities = [Rpc.STAGE_UNSTAGE_VOLUME];
    world.driver.fail("stage", "UNAVAILABLE", { times: 1 });
    await world.startPod("web", pod);
    await world.runFor(100);

    world.driver.capabilities = [];
    world.driver.fail("publish", "INVALID_ARGUMENT", { times: 99 });
    world.registerDriver();
    await world.runFor(300_000);
    expect(world.takeCalls()).toContain("publish v web");

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
}
