import { describe, expect, test } from "vitest";
import { csiNodes } from "../kube/api/csi-node.ts";
import { NODE_ID_ANNOTATION } from "./names.ts";
import { DRIVER, given, type AttacherWorld } from "./stage.testing.ts";

/** A driver that is registered anew with another id for the same machine; found by the simulator with seeds 1 to 6. */

async function renameNode(world: AttacherWorld, nodeID: string): Promise<void> {
  // An entry cannot be changed, only taken out and put in again.
  for (const drivers of [[], [{ name: DRIVER, nodeID, topologyKeys: null }]])
    await world.client.patch(csiNodes, { name: "n1" }, { type: "merge", value: { spec: { drivers } } });
  await world.settle();
}

describe("a node whose driver has another id for it by now", () => {
  test("a volume leaves the id it was published on", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();
    await world.createAttachment("va1");
    await world.settle();
    const [published] = world.driver.publishes;

    await renameNode(world, "id-n1-new");
    await world.deleteAttachment("va1");
    await world.settle();

    expect(world.driver.unpublishes.map(({ nodeId }) => nodeId)).toEqual([published?.nodeId]);
    expect(world.driver.publishedOn(published?.volumeId ?? "")).toEqual([]);
    expect(await world.attachment("va1")).toBeUndefined();
  });

  test("what a lost try may have published under the old id is withdrawn before it is published under the new one", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();
    world.driver.spoil("publish", { kind: "answer-lost" });
    await world.createAttachment("va1");
    await world.advance(2_000);
    const handle = world.driver.publishes[0]?.volumeId ?? "";
    expect(world.driver.publishedOn(handle)).toEqual(["id-n1"]);

    await renameNode(world, "id-n1-new");
    await world.advance(60_000);

    expect(world.driver.publishedOn(handle)).toEqual(["id-n1-new"]);
    expect((await world.attachment("va1"))?.metadata.annotations?.[NODE_ID_ANNOTATION]).toBe("id-n1-new");
    expect((await world.attachment("va1"))?.status?.attached).toBe(true);
    await world.deleteAttachment("va1");
    await world.settle();
    expect(world.driver.publishedOn(handle)).toEqual([]);
  });

  test("a machine that the driver has forgotten does not hold up the attach to the one in its place", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();
    world.driver.fail("publish", 4, "deadline");
    await world.createAttachment("va1");
    await world.advance(500);
    world.driver.fail("unpublish", 5, "no such node");

    await renameNode(world, "id-n1-new");
    await world.advance(60_000);

    expect((await world.attachment("va1"))?.status?.attached).toBe(true);
  });

  test("an attachment made by hand under the new id is unpublished from there, and the one under the old id stays", async () => {
    const world = await given();
    await world.createVolume("pv1", { accessModes: ["ReadWriteMany"] });
    world.start();
    await world.createAttachment("va1");
    await world.settle();
    const handle = world.driver.publishes[0]?.volumeId ?? "";
    await renameNode(world, "id-n1-new");
    await world.createAttachment("by-hand");
    await world.settle();
    expect(world.driver.publishedOn(handle)).toEqual(["id-n1", "id-n1-new"]);

    await world.deleteAttachment("by-hand");
    await world.settle();

    expect(world.driver.publishedOn(handle)).toEqual(["id-n1"]);
    expect((await world.attachment("va1"))?.status?.attached).toBe(true);
  });
});
