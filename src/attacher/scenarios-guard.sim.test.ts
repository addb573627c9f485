import { describe, expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { DRIVER, F, given, type AttacherWorld, type AttachmentSketch, type Sketch } from "./stage.testing.ts";

/** Two nodes, and `pv1` attached to the first by `va1`. */
async function givenHolder(sketch: Sketch = {}, accessModes = ["ReadWriteOnce"]): Promise<AttacherWorld> {
  const world = await given(sketch);
  await world.createNode("n2");
  await world.createVolume("pv1", { accessModes });
  await world.createAttached("va1");
  world.start();
  await world.settle();
  world.take();
  return world;
}

const errorOf = async (world: AttacherWorld, name: string) =>
  (await world.attachment(name))!.status!.attachError!.message;

describe("a volume for one node", () => {
  for (const mode of ["ReadWriteOnce", "ReadWriteOncePod"]) {
    test(`${mode}: is not published on a second one, and the error says who has it`, async () => {
      const world = await givenHolder({}, [mode]);

      await world.createAttachment("va2", { node: "n2" });
      await world.settle();

      expect(world.take()).toEqual(["attachError va2"]);
      expect(await errorOf(world, "va2")).toBe(
        'persistentvolume "pv1" may be attached to one node only, and is or may be attached to node n1 by ' +
          "VolumeAttachment va1; it goes on as soon as that one is deleted and gone",
      );
      expect((await world.attachment("va2"))!.metadata.finalizers).toBeUndefined();
      expect(world.waitOf("va2")).toBe("held-by-other-node VolumeAttachment/va1");
      expect(await world.metric("mooring_attacher_waiting", 'reason="held-by-other-node"')).toBe(1);
    });
  }

  test("goes on as soon as the other attachment is gone, however long it waited", async () => {
    const world = await givenHolder();
    await world.createAttachment("va2", { node: "n2" });
    await world.advance(600_000);
    world.take();

    await world.deleteAttachment("va1");
    await world.settle();

    // The finalizer is the word that counts; the status of one that is gone may come after.
    expect(world.take().filter((line) => line !== "detached va1")).toEqual([
      ...["unpublish vol-pv1 from id-n1", "release va1"],
      ...["hold va2", "publish vol-pv1 on id-n2", "attached va2"],
    ]);
    expect(world.waitOf("va2")).toBeUndefined();
  });

  test("of a dead node: the detach that hangs holds it, its end by hand lets it go", async () => {
    const world = await givenHolder();
    world.driver.trouble = (call) => (call === "unpublish" ? { kind: "hang" } : undefined);
    await world.createAttachment("va2", { node: "n2" });
    await world.deleteAttachment("va1");
    await world.advance(60_000);
    expect(world.driver.publishes).toEqual([]);
    expect(await errorOf(world, "va2")).toContain("as soon as that one is detached and gone");

    const value = { metadata: { finalizers: null } };
    await world.client.patch(volumeAttachments, { name: "va1" }, { type: "merge", value });
    await world.settle();

    expect(world.driver.publishedOn("vol-pv1")).toEqual(["id-n2"]);
  });

  test("is held by an attach whose outcome is open, though nothing is called attached", async () => {
    const world = await givenHolder();
    await world.createVolume("pv2");
    world.driver.spoil("publish", { kind: "answer-lost" });
    await world.createAttachment("va3", { volume: "pv2" });
    await world.advance(1_000);

    await world.createAttachment("va4", { volume: "pv2", node: "n2" });
    await world.advance(60_000);

    expect(world.driver.publishedOn("vol-pv2")).toEqual(["id-n1"]);
    expect(world.waitOf("va4")).toBe("held-by-other-node VolumeAttachment/va3");
  });

  test("asked for by two at once gets one of them, also when the finalizer of the first got no answer", async () => {
    const world = await given();
    await world.createNode("n2");
    await world.createVolume("pv1");
    world.start();
    await world.settle();
    world.transport.spoil("hold va1", { kind: "answer-lost" }, 1);

    await Promise.all([world.createAttachment("va1"), world.createAttachment("va2", { node: "n2" })]);
    await world.advance(120_000);

    expect(world.driver.publishedOn("vol-pv1")).toHaveLength(1);
    expect(new Set(world.driver.publishes.map(({ nodeId }) => nodeId)).size).toBe(1);
  });

  test("that two PersistentVolumes name is one volume", async () => {
    const world = await givenHolder();
    await world.createVolume("pv1-again", { csi: { driver: DRIVER, volumeHandle: "vol-pv2" } });
    await world.createVolume("pv2");
    await world.createAttachment("va3", { volume: "pv2" });
    await world.settle();

    await world.createAttachment("va4", { volume: "pv1-again", node: "n2" });
    await world.settle();

    expect(world.driver.publishedOn("vol-pv2")).toEqual(["id-n1"]);
    expect(world.waitOf("va4")).toBe("held-by-other-node VolumeAttachment/va3");
  });

  test("is published on two nodes where the guard is switched off", async () => {
    const world = await givenHolder({ options: { singleNodeGuard: false } });

    await world.createAttachment("va2", { node: "n2" });
    await world.settle();

    expect(world.take()).toEqual(["hold va2", "publish vol-pv1 on id-n2", "attached va2"]);
  });

  const elsewhere: readonly (readonly [string, AttachmentSketch])[] = [
    ["does not hold it, if never attached", {}],
    [
      "does not hold it, if let go and kept by a foreign finalizer",
      { metadata: { finalizers: ["z/last"] }, status: { attached: true } },
    ],
    [
      "does not hold it, if of another driver",
      { attacher: "other", metadata: { finalizers: [F] }, status: { attached: true } },
    ],
  ];
  for (const [title, sketch] of elsewhere) {
    test(`an attachment elsewhere ${title}`, async () => {
      const world = await given();
      await world.createNode("n2");
      await world.createVolume("pv1");
      await world.createAttachment("va1", { node: "n3", ...sketch });
      if (sketch.metadata && sketch.attacher === undefined) await world.deleteAttachment("va1");
      world.start();

      await world.createAttachment("va2", { node: "n2" });
      await world.settle();

      expect(world.driver.publishedOn("vol-pv1")).toEqual(["id-n2"]);
    });
  }
});

for (const modes of [["ReadWriteMany"], ["ReadOnlyMany"], ["ReadWriteOnce", "ReadWriteMany"]]) {
  test(`a volume for many nodes, ${modes.join(" and ")}, is published on each`, async () => {
    const world = await givenHolder({}, modes);

    await world.createAttachment("va2", { node: "n2" });
    await world.settle();

    expect(world.driver.publishedOn("vol-pv1")).toEqual(["id-n2"]);
    expect((await world.attachment("va2"))!.status).toEqual({ attached: true });
  });
}
