import { describe, expect, test } from "vitest";
import { resourceName } from "../kube/object.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { DRIVER, F, given, NODE_ID, type AttacherWorld } from "./stage.testing.ts";
import { SECRET_ANNOTATION } from "./names.ts";

/**
 * Two PersistentVolumes name one disk, and the first attachment was made by an attacher that records nothing: only its
 * PersistentVolume tells which disk it has.
 */

async function twoNames(node: string): Promise<AttacherWorld> {
  const world = await given();
  await world.createNode("n2");
  const csi = { driver: DRIVER, volumeHandle: "v" };
  await world.createVolume("pv1", { csi });
  await world.createVolume("renamed", { csi });
  await world.createAttached("stock", { volume: "pv1", node: "n1" });
  world.start();
  await world.createAttachment("second", { volume: "renamed", node });
  await world.advance(10_000);
  return world;
}

describe("a disk of two PersistentVolumes, attached by somebody who recorded nothing", () => {
  test("is not published on a second node under the other name", async () => {
    const world = await twoNames("n2");
    expect(world.driver.publishes).toEqual([]);
    expect(world.waitOf("second")).toBe("held-by-other-node VolumeAttachment/stock");

    await world.deleteAttachment("stock");
    await world.advance(2_000);
    expect(world.driver.publishedOn("v")).toEqual(["id-n2"]);
  });

  test("stays on its node when the attachment of the other name goes", async () => {
    const world = await twoNames("n1");
    await world.deleteAttachment("second");
    await world.advance(10_000);

    expect(world.driver.unpublishes).toEqual([]);
    expect(await world.attachment("second")).toBeUndefined();
  });
});

test("an attachment whose annotations are not text disturbs no other attachment of its volume", async () => {
  const world = await given();
  await world.createVolume("pv1");
  const annotations = { [NODE_ID]: 5, [SECRET_ANNOTATION]: 5, "mooring.dev/volume-handle": "vol-pv1" };
  const bad = {
    metadata: { name: "bad", uid: "uid-bad", finalizers: [F], annotations },
    spec: { attacher: DRIVER, nodeName: "n1", source: { persistentVolumeName: "pv1" } },
    status: { attached: true },
  };
  await world.writeRaw(resourceName(volumeAttachments), bad);
  world.start();
  await world.createAttachment("good");
  await world.advance(10_000);

  expect((await world.attachment("good"))?.status?.attached).toBe(true);
  expect(world.log.filter(({ text }) => text.includes("split"))).toEqual([]);
});
