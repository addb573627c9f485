import { expect, test } from "vitest";
import { csiDrivers } from "../../kube/api/csi-driver.ts";
import { nodes } from "../../kube/api/node.ts";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
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

test("a Node that is deleted or made anew is broken, and one that has not joined yet is not", async () => {
  const { world, look } = await worldWithLedger();
  const nodeMade = async () => {
    const made = world.client.create(nodes, { metadata: { name: "node-1" } });
    await world.scheduler.runFor(100);
    await made;
  };
  const nodeDeleted = async () => {
    const gone = world.client.delete(nodes, { name: "node-1" });
    await world.scheduler.runFor(100);
    await gone;
  };
  expect(look()).toEqual([]);
  await nodeMade();
  expect(look()).toEqual([]);

  await nodeDeleted();
  expect(look()).toEqual(["renewed node-1"]);
  await world.scheduler.runFor(1_000);
  await nodeMade();
  await nodeDeleted();
  await nodeMade();
  expect(look()).toEqual(["renewed node-1"]);
  await world.scheduler.runFor(1_000);
  expect(look()).toEqual([]);
});

test("a VolumeAttachment that is deleted is broken while its node uses the volume", async () => {
  const { world, look } = await worldWithLedger();
  const run = async (work: Promise<unknown>) => {
    await world.scheduler.runFor(100);
    await work;
  };
  const inUse = (volumesInUse: readonly string[]) =>
    world.client.patch(
      nodes,
      { name: "node-1" },
      { type: "merge", value: { status: { volumesInUse } } },
      { subresource: "status" },
    );
  await run(world.client.create(nodes, { metadata: { name: "node-1" } }));
  await run(inUse([`kubernetes.io/csi/${SAN_DRIVER}^d1`]));
  const metadata = {
    name: "csi-1",
    finalizers: ["external-attacher/san"],
    annotations: { "mooring.dev/volume-handle": "d1" },
  };
  const source = { persistentVolumeName: "pv-1" };
  await run(
    world.client.create(volumeAttachments, {
      metadata,
      spec: { attacher: SAN_DRIVER, nodeName: "node-1", source },
    }),
  );
  expect(look()).toEqual([]);

  await run(world.client.delete(volumeAttachments, { name: "csi-1" }));
  expect(look()).toEqual(["detached node-1"]);
  await run(inUse([]));
  await world.scheduler.runFor(1_000);
  expect(look()).toEqual([]);
});
