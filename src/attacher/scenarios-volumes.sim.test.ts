import { describe, expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { F, given, NODE_ID } from "./stage.testing.ts";
import { MIGRATED_TO_ANNOTATION } from "./names.ts";
import { isToBeReleased, planVolume } from "./volume-finalizer.ts";

/** Numbers are those of the specification's scenarios. */
describe("our finalizer on a PersistentVolume", () => {
  test("53, 54, 57: goes when the last attachment is gone, ours only and by its place", async () => {
    const world = await given();
    await world.createVolume("pv1", {}, { finalizers: ["a/first", F, "z/last"] });
    await world.createAttached("va1");
    await world.createAttached("va2", {
      node: "n2",
      attacher: "other.test",
      metadata: { finalizers: ["x/y"] },
    });
    await world.deleteVolume("pv1");
    await world.deleteAttachment("va1");
    world.start();
    await world.settle();
    expect((await world.volume("pv1"))!.metadata.finalizers).toContain(F);
    world.take();

    const metadata = { finalizers: null };
    await world.client.patch(volumeAttachments, { name: "va2" }, { type: "merge", value: { metadata } });
    await world.deleteAttachment("va2");
    await world.settle();

    expect(world.take()).toEqual(["release pv1"]);
    const { finalizers } = (await world.volume("pv1"))!.metadata;
    expect(finalizers!.filter((name) => !name.startsWith("kubernetes.io/"))).toEqual(["a/first", "z/last"]);
  });

  test("58: is tried again until it works", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();
    world.refuse("release pv1", 403, 2);

    await world.deleteVolume("pv1");
    await world.advance(4_000);

    expect(world.take()).toEqual(["release pv1", "release pv1", "release pv1"]);
    expect((await world.volume("pv1"))!.metadata.finalizers).not.toContain(F);
  });

  test("55, 56, 60: a volume that is not held, stays or is of another driver is left alone", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createVolume("pv2", {}, { finalizers: ["a/first"] });
    await world.deleteVolume("pv2");
    const foreign = { csi: { driver: "other.test", volumeHandle: "v" } };
    await world.createVolume("pv3", foreign, { finalizers: ["external-attacher/other-test"] });
    await world.deleteVolume("pv3");
    world.start();
    await world.settle();

    expect(world.take()).toEqual([]);
  });

  test("61: a deletion that only a new list tells of", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1", { metadata: { annotations: { [NODE_ID]: "id-n1" } } });
    world.start();
    await world.settle();
    world.transport.cut();
    await world.deleteVolume("pv1");
    await world.deleteAttachment("va1");
    await world.advance(5_000);
    expect((await world.volume("pv1"))!.metadata.finalizers).toContain(F);

    world.transport.mend();
    await world.advance(60_000);

    expect((await world.volume("pv1"))!.metadata.finalizers).not.toContain(F);
  });

  for (const [annotation, released] of [
    [undefined, true],
    ["other.csi", true],
    ["ebs.csi.aws.com", false],
  ] as const) {
    test(`59: of an in-tree volume migrated to ${annotation} is ${released ? "given up" : "kept"}`, () => {
      const volume = {
        metadata: {
          name: "pv1",
          finalizers: ["external-attacher/ebs-csi-aws-com"],
          ...(annotation && { annotations: { [MIGRATED_TO_ANNOTATION]: annotation } }),
        },
        spec: { awsElasticBlockStore: { volumeID: "vol-1" } },
      };
      const holder = { driver: "ebs.csi.aws.com", finalizer: "external-attacher/ebs-csi-aws-com" };

      expect(isToBeReleased(volume, holder)).toBe(released);
      expect(planVolume(volume, holder, { attachments: 1 })).toBeUndefined();
      expect(planVolume(volume, holder, { attachments: 0 }) !== undefined).toBe(released);
    });
  }
});

describe("a driver without ControllerPublish", () => {
  test("79: its attachments are called attached, and nothing else is written", async () => {
    const world = await given({ driver: { publishes: false } });
    await world.createVolume("pv1", {}, {});
    world.start();
    world.refuse("attached va1", 403, 2);

    await world.createAttachment("va1");
    await world.createAttachment("va2", { attacher: "other.test" });
    await world.advance(4_000);

    expect(world.take()).toEqual(["attached va1", "attached va1", "attached va1"]);
    const { metadata, status } = (await world.attachment("va1"))!;
    expect(status).toEqual({ attached: true });
    expect(metadata.finalizers).toBeUndefined();
  });
});
