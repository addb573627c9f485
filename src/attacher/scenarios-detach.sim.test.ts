import { describe, expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { DRIVER, F, given, NODE_ID } from "./stage.testing.ts";

/** Numbers are those of the specification's scenarios. */
describe("an attachment is detached", () => {
  const inOrder = ["unpublish vol-pv1 from id-n1", "release va1", "detached va1"];

  test("37, 51: unpublish, then the finalizer goes, then the status, which is gone by then", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1");
    world.start();
    await world.settle();

    await world.deleteAttachment("va1");
    await world.settle();

    expect(world.take()).toEqual(inOrder);
    expect(await world.attachment("va1")).toBeUndefined();
    expect(world.driver.unpublishes).toHaveLength(1);
  });

  test("38: an inline volume", async () => {
    const world = await given();
    const csi = { driver: DRIVER, volumeHandle: "vol-inline" };
    await world.createAttached("va1", {
      source: { inlineVolumeSpec: { accessModes: ["ReadWriteOnce"], csi } },
    });
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(["unpublish vol-inline from id-n1", "release va1", "detached va1"]);
  });

  for (const data of [{ foo: "bar" }, {}]) {
    test(`39: with the secret of its volume: ${JSON.stringify(data)}`, async () => {
      const world = await given();
      await world.createSecret("s1", data);
      const controllerPublishSecretRef = { namespace: "default", name: "s1" };
      await world.createVolume("pv1", {
        csi: { driver: DRIVER, volumeHandle: "v", controllerPublishSecretRef },
      });
      await world.createAttached("va1");
      await world.deleteAttachment("va1");
      world.start();
      await world.settle();

      expect(world.take()).toEqual([
        "get secret s1",
        "unpublish v from id-n1",
        "release va1",
        "detached va1",
      ]);
      expect(world.driver.unpublishes[0]!.secrets!.reveal()).toEqual(data);
    });
  }

  test("44: one that is not held is no concern of ours, whatever its status says", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1", { metadata: { finalizers: ["foreign/one"] } });
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual([]);
  });

  test("45: one that is held and not attached may be an attach that timed out", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1", { status: { attached: false } });
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(inOrder);
  });

  test("48: a node that is gone goes by the id of the attach", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1", { node: "n9" });
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();

    expect(world.take()[0]).toBe("unpublish vol-pv1 from id-n9");
    expect(await world.attachment("va1")).toBeUndefined();
  });

  test("52: finalizers of others stay, and the status is told", async () => {
    const world = await given();
    await world.createVolume("pv1");
    const metadata = { finalizers: ["a/first", F, "z/last"], annotations: { [NODE_ID]: "id-n1" } };
    await world.createAttached("va1", { metadata });
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(inOrder);
    const left = (await world.attachment("va1"))!;
    expect(left.metadata.finalizers).toEqual(["a/first", "z/last"]);
    expect(left.status).toEqual({ attached: false });
    await world.advance(700_000);
    expect(world.take()).toEqual([]);
  });

  test("an attach under way ends before the detach of the same attachment begins", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.delayMs = 5_000;
    world.start();

    await world.createAttachment("va1");
    await world.advance(1_000);
    await world.deleteAttachment("va1");
    await world.advance(12_000);

    expect(world.take()).toEqual(["hold va1", "publish vol-pv1 on id-n1", "attached va1", ...inOrder]);
    expect(world.driver.publishedOn("vol-pv1")).toEqual([]);
  });
});

describe("a detach that fails", () => {
  test("40: a missing secret: the finalizer stays, and the error says what unblocks it", async () => {
    const world = await given();
    const controllerPublishSecretRef = { namespace: "default", name: "s1" };
    await world.createVolume("pv1", {
      csi: { driver: DRIVER, volumeHandle: "v", controllerPublishSecretRef },
    });
    await world.createAttached("va1");
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(["get secret s1", "detachError va1"]);
    const { metadata, status } = (await world.attachment("va1"))!;
    expect(metadata.finalizers).toEqual([F]);
    for (const word of ["default/s1", "va1", "pv1", "creating it again unblocks this"]) {
      expect(status!.detachError!.message).toContain(word);
    }
  });

  for (const [title, code] of [
    ["41: a driver that fails", 13],
    ["42: a driver that does not find it", 5],
  ] as const) {
    test(`${title}: the volume may still be there`, async () => {
      const world = await given();
      await world.createVolume("pv1");
      await world.createAttached("va1");
      world.driver.fail("unpublish", code, "no");
      await world.deleteAttachment("va1");
      world.start();
      await world.settle();
      expect(world.take()).toEqual(["unpublish vol-pv1 from id-n1", "detachError va1"]);
      expect((await world.attachment("va1"))!.status).toMatchObject({ attached: true });
      expect((await world.attachment("va1"))!.status!.detachError).not.toHaveProperty("errorCode");

      await world.advance(1_000);
      expect(await world.attachment("va1")).toBeUndefined();
    });
  }

  test("43: an unpublish without an answer", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1");
    world.driver.spoil("unpublish", { kind: "hang" });
    await world.deleteAttachment("va1");
    world.start();

    await world.advance(15_500);
    expect((await world.attachment("va1"))!.status!.detachError!.message).toContain("DeadlineExceeded");

    await world.advance(1_500);
    expect(await world.attachment("va1")).toBeUndefined();
  });

  test("46: a volume that is gone and left no record", async () => {
    const world = await given();
    await world.createAttached("va1");
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(["detachError va1"]);
    expect((await world.attachment("va1"))!.status!.detachError!.message).toBe(
      'persistentvolume "pv1" not found',
    );
  });

  test("49: neither a CSINode nor an annotation", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1", { node: "n9", metadata: { finalizers: [F] } });
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(["detachError va1"]);
  });

  test("50: a finalizer that cannot be removed: unpublish is called again", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1");
    await world.deleteAttachment("va1");
    world.start();
    world.refuse("release va1");

    await world.advance(2_000);

    expect(world.take()).toEqual([
      "unpublish vol-pv1 from id-n1",
      "release va1",
      "detachError va1",
      "unpublish vol-pv1 from id-n1",
      "release va1",
      "detached va1",
    ]);
  });
});

describe("what upstream gets wrong", () => {
  test("W1: a volume that vanished is detached by the record of its attach, secret and all", async () => {
    const world = await given();
    await world.createSecret("s1", { foo: "bar" });
    const controllerPublishSecretRef = { namespace: "default", name: "s1" };
    await world.createVolume("pv1", {
      csi: { driver: DRIVER, volumeHandle: "v", controllerPublishSecretRef },
    });
    world.start();
    await world.createAttachment("va1");
    await world.settle();
    const value = { metadata: { finalizers: null } };
    await world.client.patch(persistentVolumes, { name: "pv1" }, { type: "merge", value });
    await world.deleteVolume("pv1");
    await world.settle();
    world.take();

    await world.deleteAttachment("va1");
    await world.settle();

    expect(world.take()).toEqual(["get secret s1", "unpublish v from id-n1", "release va1", "detached va1"]);
    expect(world.driver.unpublishes[0]!.secrets!.reveal()).toEqual({ foo: "bar" });
    expect(JSON.stringify(world.log)).not.toContain("bar");
  });

  test("W2: a cache that lags behind does not make it unpublish twice", async () => {
    const world = await given();
    await world.createVolume("pv1");
    const metadata = { finalizers: [F, "z/last"], annotations: { [NODE_ID]: "id-n1" } };
    await world.createAttached("va1", { metadata });
    world.start();
    await world.settle();
    await world.deleteAttachment("va1");
    await world.scheduler.runUntilTrue(() => world.journal.length > 0, { withinMs: 1_000 });
    world.held.add("volumeattachments");
    await world.advance(60_000);
    world.held.clear();
    await world.settle();

    expect(world.driver.unpublishes).toHaveLength(1);
  });

  test("W4, W11: an attach in back-off is tried as soon as what it lacked is there", async () => {
    const world = await given();
    world.start();
    await world.createAttachment("va1", { node: "n2" });
    await world.advance(600_000);
    world.take();

    await world.createVolume("pv1");
    await world.settle();
    expect(world.take()).toEqual(["attachError va1"]);

    await world.createNode("n2");
    await world.settle();
    expect(world.take()).toEqual(["hold va1", "publish vol-pv1 on id-n2", "attached va1"]);
  });

  test("section 7: a detach does not inherit the back-off of the attach, nor one of the same name", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.trouble = (call) =>
      call === "publish" ? { kind: "error", code: 13, text: "no" } : undefined;
    world.start();
    await world.createAttachment("va1");
    await world.advance(600_000);
    world.take();

    await world.deleteAttachment("va1");
    await world.settle();
    expect(world.take()).toEqual(["unpublish vol-pv1 from id-n1", "release va1", "detached va1"]);

    await world.createAttachment("va1");
    await world.advance(2_000);
    expect(world.take().filter((line) => line.startsWith("publish"))).toHaveLength(2);
  });

  for (const finalizers of [[F], []])
    test(`W3: our own error, and finalizers written just before, do not cut the back-off short; the volume has ${finalizers.length}`, async () => {
      const world = await given();
      await world.createVolume("pv1", {}, { finalizers });
      world.driver.trouble = () => ({ kind: "error", code: 13, text: "no" });
      world.start();
      await world.createAttachment("va1");

      await world.advance(10_000); // tries at 0, 1, 3 and 7 s
      expect(world.driver.publishes).toHaveLength(4);
    });

  test("a message that is too long for the API server is shortened, not lost", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.fail("publish", 13, "ü".repeat(5_000));
    world.start();
    await world.createAttachment("va1");
    await world.settle();

    const { message } = (await world.attachment("va1"))!.status!.attachError!;
    expect(Buffer.byteLength(message!)).toBeLessThanOrEqual(1_024);
    expect(message).toMatch(/ü\.\.\.$/);
  });

  test("an attachment deleted and made anew under the same name gets nothing of the old one", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.delayMs = 5_000;
    world.start();
    await world.createAttachment("va1");
    await world.advance(1_000);
    const value = { metadata: { finalizers: null } };
    await world.client.patch(volumeAttachments, { name: "va1" }, { type: "merge", value });
    await world.deleteAttachment("va1");
    await world.createAttachment("va1");
    await world.advance(4_200);

    // The first publish has ended; its word is not for this object.
    expect((await world.attachment("va1"))!.status?.attached ?? false).toBe(false);
    await world.advance(8_000);
    expect((await world.attachment("va1"))!.status).toEqual({ attached: true });
    expect((await world.attachment("va1"))!.metadata.finalizers).toEqual([F]);
  });
});
