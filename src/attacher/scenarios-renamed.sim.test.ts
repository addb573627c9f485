import { describe, expect, test } from "vitest";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
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

describe("a PersistentVolume that is made again under another name while its disk is attached", () => {
  const csi = { driver: DRIVER, volumeHandle: "v" };

  /** The driver was asked once, gave no answer in time, and the PersistentVolume is gone. */
  async function begun(before: (world: AttacherWorld) => Promise<void> = async () => undefined) {
    const world = await given();
    await before(world);
    await world.createVolume("pv1", { csi });
    world.start();
    world.driver.fail("publish", 4, "deadline");
    await world.createAttachment("va1", { volume: "pv1" });
    await world.advance(500);
    await world.deleteVolume("pv1");
    await world.client.patch(
      persistentVolumes,
      { name: "pv1" },
      { type: "merge", value: { metadata: { finalizers: null } } },
    );
    await world.advance(10_000);
    expect(world.driver.publishes).toHaveLength(1);
    expect(world.waitOf("va1")).toBe("volume-missing PersistentVolume/pv1");
    return world;
  }

  test("is attached by that, at once, and detached by its record", async () => {
    const world = await begun();

    await world.createVolume("renamed", { csi: { ...csi, volumeAttributes: { pool: "b" } } }, {});
    await world.settle();
    expect((await world.attachment("va1"))?.status?.attached).toBe(true);
    expect(world.driver.publishes.at(-1)).toMatchObject({ volumeId: "v", volumeContext: { pool: "b" } });
    expect((await world.volume("renamed"))?.metadata.finalizers).not.toContain(F);

    await world.deleteAttachment("va1");
    await world.settle();
    expect(world.driver.publishedOn("v")).toEqual([]);
    expect(await world.attachment("va1")).toBeUndefined();
  });

  test("on one node only, as with its own", async () => {
    const world = await begun();
    await world.createNode("n2");
    await world.createVolume("renamed", { csi });
    await world.settle();
    await world.createAttachment("va2", { volume: "renamed", node: "n2" });
    await world.settle();

    expect(world.driver.publishedOn("v")).toEqual(["id-n1"]);
    expect(world.waitOf("va2")).toBe("held-by-other-node VolumeAttachment/va1");
  });

  test("is not attached by one that goes, by one of another disk or driver, or by one of two", async () => {
    const world = await begun(async (earlier) => {
      await earlier.createVolume("going", { csi }, { finalizers: ["test/kept"] });
      await earlier.deleteVolume("going");
      await earlier.createVolume("other-disk", { csi: { ...csi, volumeHandle: "w" } }, {});
      await earlier.createVolume("other-driver", { csi: { ...csi, driver: "other.test" } }, {});
    });
    await world.advance(600_000);
    expect(world.driver.publishes).toHaveLength(1);

    await world.deleteAttachment("va1");
    await world.settle();
    world.driver.fail("publish", 4, "deadline");
    await world.createVolume("one", { csi }, {});
    await world.createVolume("two", { csi }, {});
    await world.createAttachment("va2", { volume: "one" });
    await world.advance(500);
    await world.deleteVolume("one");
    await world.createVolume("three", { csi }, {});
    await world.advance(600_000);
    expect((await world.attachment("va2"))?.status?.attached).not.toBe(true);
  });
});
