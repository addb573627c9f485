import { expect, test } from "vitest";
import { csiDrivers } from "../../kube/api/csi-driver.ts";
import { makeDriver } from "../acts/drivers.ts";
import { SAN_DRIVER } from "../san.ts";
import { World } from "../world.ts";
import { FaultLedger } from "./fault-ledger.ts";

/** What the ledger calls broken of the objects and mounts of a world, in which no process has started. */
async function worldWithLedger() {
  const world = new World(1, { nodes: 1, loop: false, logs: false });
  await world.server.start();
  const ledger = new FaultLedger(world);
  const look = () => {
    ledger.look();
    return ledger.lately(0).filter((fault) => !fault.startsWith("process "));
  };
  return { world, look };
}

test("a CSIDriver object is broken where it says that no volume of the driver needs an attach", async () => {
  const { world, look } = await worldWithLedger();
  const made = makeDriver(world.client);
  await world.scheduler.runFor(100);
  await made;
  expect(look()).toEqual([]);

  const switched = world.client
    .delete(csiDrivers, { name: SAN_DRIVER })
    .then(() => makeDriver(world.client, false));
  await world.scheduler.runFor(100);
  await switched;
  expect(look()).toEqual(["csidriver"]);
});

test("a mount that answers with an error is broken like one that answers nobody", async () => {
  const { world, look } = await worldWithLedger();
  const { host } = world.node("node-1").machine;

  host.breakMount("/mnt");
  expect(look()).toEqual(["kernel node-1"]);
});
