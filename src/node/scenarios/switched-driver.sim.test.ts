import { expect, test } from "vitest";
import { DRIVER } from "../../sim/cluster-objects.ts";
import type { Transport } from "../../kube/transport/transport.ts";
import { given } from "../../sim/node-world.ts";

/** A CSIDriver object that says that its volumes need no attach, though they do, and is put right. */

async function refusedWithoutAttach() {
  const world = await given({ volumes: { v: {} }, attached: false, driver: { attachRequired: false } });
  world.driver.fail("stage", "INVALID_ARGUMENT", { times: 99 });
  await world.startPod("web", { uses: ["v"] });
  await world.settle();
  world.takeCalls();
  await world.setDriver(DRIVER, { attachRequired: true });
  world.driver.heal();
  return world;
}

test("what was taken on without an attach is not touched before it is attached", async () => {
  const world = await refusedWithoutAttach();

  await world.runFor(300_000);
  expect(world.takeCalls()).toEqual([]);
  expect(world.inUse()).toEqual(["v"]);

  await world.attach("v");
  await world.runFor(1_000);
  expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
});

test("what is attached by now stays in use until nothing of it is left, whatever the driver says", async () => {
  const world = await refusedWithoutAttach();
  await world.attach("v");
  await world.runFor(300_000);

  await world.setDriver(DRIVER, { attachRequired: false });
  await world.runFor(10_000);
  expect(world.inUse()).toEqual(["v"]);
});

test("what was mounted without an attach stays in use while it is unmounted, once it needs one", async () => {
  const world = await given({
    pods: { web: { uses: ["v"] } },
    attached: false,
    driver: { attachRequired: false },
  });
  await world.setDriver(DRIVER, { attachRequired: true });
  await world.runFor(10_000);
  expect(world.inUse()).toEqual(["v"]);

  world.driver.fail("unpublish", "INTERNAL", { times: 99 });
  await world.removePod("web");
  await world.runFor(10_000);
  expect(world.inUse()).toEqual(["v"]);

  world.driver.heal();
  await world.runFor(300_000);
  expect(world.inUse()).toEqual([]);
});

test("after a restart it stays in use, also where the driver's object is read before the node's", async () => {
  const world = await given({ pods: { web: { uses: ["v"] } } });
  await world.setDriver(DRIVER, { attachRequired: false });
  await world.runFor(1_000);
  world.abandon();
  const slowNode = (transport: Transport): Transport => ({
    ...transport,
    async stream(call) {
      if (call.path.includes("/nodes?")) await world.clock.sleep(5_000, call.signal);
      return transport.stream(call);
    },
  });

  world.start({ wrapTransport: slowNode });
  await world.runFor(60_000);

  expect(world.inUse()).toEqual(["v"]);
});
