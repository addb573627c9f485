import { describe, expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { DRIVER, F, given, NODE_ID } from "./stage.testing.ts";

/** Numbers are those of the specification's scenarios. */
describe("an attachment is attached", () => {
  const inOrder = ["hold va1", "publish vol-pv1 on id-n1", "attached va1"];

  test("1: finalizer and node id in one write, then publish, then the status", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();

    await world.createAttachment("va1");
    await world.settle();

    expect(world.take()).toEqual(inOrder);
    const { metadata, status } = (await world.attachment("va1"))!;
    expect(metadata.finalizers).toEqual([F]);
    expect(metadata.annotations).toMatchObject({ [NODE_ID]: "id-n1" });
    expect(status).toEqual({ attached: true });
    expect(world.driver.publishes[0]).toMatchObject({
      readonly: false,
      volumeContext: {},
      secrets: undefined,
    });
  });

  test("1: one that is there when the attacher starts, too", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttachment("va1");

    world.start();
    await world.settle();

    expect(world.take()).toEqual(inOrder);
  });

  test("section 6: nothing is done before nodes are known too, or every start would tell of errors that are none", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttachment("va1");
    world.held.add("csinodes");
    world.start();
    await world.advance(20_000);
    expect(world.take()).toEqual([]);

    world.held.delete("csinodes");
    await world.settle();

    expect(world.take()).toEqual(inOrder);
  });

  test("2: one that is changed after nothing could be done about it", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();
    world.refuse("hold va1", 403, 1);
    world.refuse("attachError va1", 403, 1);
    await world.createAttachment("va1");
    await world.settle();
    world.take();

    const metadata = { annotations: { somebody: "changed this" } };
    await world.client.patch(volumeAttachments, { name: "va1" }, { type: "merge", value: { metadata } });
    await world.settle();

    expect(world.take()).toEqual(inOrder);
  });

  test("3, 6: an inline volume, without any PersistentVolume", async () => {
    const world = await given();
    world.start();

    await world.createAttachment("va1", {
      source: {
        inlineVolumeSpec: {
          accessModes: ["ReadWriteOnce"],
          csi: { driver: DRIVER, volumeHandle: "vol-inline", readOnly: true },
        },
      },
    });
    await world.settle();

    expect(world.take()).toEqual(["hold va1", "publish vol-inline on id-n1", "attached va1"]);
    expect(world.driver.publishes[0]!.readonly).toBe(true);
  });

  for (const [title, publishReadonly] of [
    ["4: read-only is passed on to a driver that can", true],
    ["5: read-only is not passed on to a driver that cannot", false],
  ] as const) {
    test(title, async () => {
      const world = await given({ driver: { publishReadonly } });
      await world.createVolume("pv1", { csi: { driver: DRIVER, volumeHandle: "v", readOnly: true } });
      world.start();

      await world.createAttachment("va1");
      await world.settle();

      expect(world.driver.publishes[0]!.readonly).toBe(publishReadonly);
    });
  }

  test("7: attributes of the volume are its context", async () => {
    const world = await given();
    const csi = { driver: DRIVER, volumeHandle: "v", volumeAttributes: { foo: "bar" } };
    await world.createVolume("pv1", { csi });
    world.start();

    await world.createAttachment("va1");
    await world.settle();

    expect(world.driver.publishes[0]!.volumeContext).toEqual({ foo: "bar" });
  });

  test("11: a volume that is not held is held first", async () => {
    const world = await given();
    await world.createVolume("pv1", {}, { finalizers: ["kubernetes.io/pv-protection"] });
    world.start();

    await world.createAttachment("va1");
    await world.settle();

    expect(world.take()).toEqual(["hold pv1", ...inOrder]);
    expect((await world.volume("pv1"))!.metadata.finalizers).toEqual(["kubernetes.io/pv-protection", F]);
  });

  test("13: what is attached is left alone", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttached("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual([]);
  });

  test("15: what the driver answers becomes the metadata, and replaces what was there", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.context = { foo: "bar" };
    world.start();

    await world.createAttachment("va1", { status: { attachmentMetadata: { old: "gone" } } });
    await world.settle();

    expect((await world.attachment("va1"))!.status).toEqual({
      attached: true,
      attachmentMetadata: { foo: "bar" },
    });
  });

  test("16: one of another driver is ignored entirely", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();

    await world.createAttachment("va1", { attacher: "other.test" });
    await world.settle();

    expect(world.take()).toEqual([]);
  });

  test("30: an in-tree GCE disk goes by its translated handle", async () => {
    const world = await given();
    world.driver.name = DRIVER;
    await world.createVolume(
      "pv1",
      { gcePersistentDisk: { pdName: "disk-1" } },
      { labels: { "topology.kubernetes.io/zone": "us-central1-a" } },
    );
    world.start();

    await world.createAttachment("va1");
    await world.settle();

    // This driver is not the one that serves GCE disks: a clear error, never a wrong handle.
    expect((await world.attachment("va1"))!.status!.attachError!.message).toContain(
      "its volume belongs to driver pd.csi.storage.gke.io",
    );
    expect(world.driver.publishes).toEqual([]);
  });

  for (const [title, spec, options, access] of [
    ["31: a block volume", { volumeMode: "Block" }, {}, { kind: "block" }],
    [
      "32: the default filesystem, where the volume names none",
      {},
      { defaultFsType: "xfs" },
      { kind: "mount", fsType: "xfs", mountFlags: [] },
    ],
    [
      "33: the volume's own filesystem, whatever the default",
      { csi: { driver: DRIVER, volumeHandle: "v", fsType: "ext3" } },
      { defaultFsType: "xfs" },
      { kind: "mount", fsType: "ext3", mountFlags: [] },
    ],
    [
      "36: mount options in their order",
      { mountOptions: ["b", "a"] },
      {},
      { kind: "mount", fsType: "", mountFlags: ["b", "a"] },
    ],
  ] as const) {
    test(title, async () => {
      const world = await given({ options });
      await world.createVolume("pv1", spec as object);
      world.start();

      await world.createAttachment("va1");
      await world.settle();

      expect(world.driver.publishes[0]!.capability.access).toEqual(access);
    });
  }
});

describe("an attach that fails", () => {
  test("12: a volume that cannot be held: the error stays until the attach succeeded", async () => {
    const world = await given();
    await world.createVolume("pv1", {}, {});
    world.start();
    world.refuse("hold pv1");

    await world.createAttachment("va1");
    await world.settle();
    expect(world.take()).toEqual(["hold pv1", "attachError va1"]);
    expect((await world.attachment("va1"))!.status!.attachError!.message).toContain("Forbidden");

    await world.advance(1_000);
    expect(world.take()).toEqual(["hold pv1", "hold va1", "publish vol-pv1 on id-n1", "attached va1"]);
    expect((await world.attachment("va1"))!.status).toEqual({ attached: true });
  });

  test("14: a volume that is being deleted is not attached", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createAttachment("va1");
    await world.deleteVolume("pv1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(["attachError va1"]);
    expect((await world.attachment("va1"))!.status!.attachError!.message).toBe(
      'persistentvolume "pv1" is being deleted: it is not attached',
    );
  });

  test("17, 18: an unknown volume; errors that cannot be saved are tried again", async () => {
    const world = await given();
    world.start();
    world.refuse("attachError va1", 403, 2);

    await world.createAttachment("va1");
    await world.advance(4_000);

    expect(world.take()).toEqual(["attachError va1", "attachError va1", "attachError va1"]);
    expect((await world.attachment("va1"))!.status!.attachError!.message).toBe(
      'persistentvolume "pv1" not found',
    );
  });

  test("21: without a CSINode, and the annotation is not believed", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();

    await world.createAttachment("va1", { node: "n9", metadata: { annotations: { [NODE_ID]: "id-old" } } });
    await world.settle();

    expect(world.take()).toEqual(["attachError va1"]);
    expect((await world.attachment("va1"))!.status!.attachError!.message).toContain("node n9 has no CSINode");
  });

  test("22: with a CSINode that does not know the driver", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createNode("n2", ["other.test"]);
    world.start();

    await world.createAttachment("va1", { node: "n2" });
    await world.settle();

    expect((await world.attachment("va1"))!.status!.attachError!.message).toContain(
      `node n2 has not registered driver ${DRIVER}`,
    );
  });

  test("23: nothing is published before the finalizer is there", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();
    world.refuse("hold va1");
    world.refuse("attachError va1");

    await world.createAttachment("va1");
    await world.advance(2_000);

    expect(world.take()).toEqual([
      "hold va1",
      "attachError va1",
      "hold va1",
      "publish vol-pv1 on id-n1",
      "attached va1",
    ]);
  });

  // What the server refuses for good is told: scenarios-refused.sim.test.ts.
  test("24: a status that cannot be written: publish is called again, and nobody is told of an error", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.start();
    world.refuse("attached va1", 401);

    await world.createAttachment("va1");
    await world.advance(2_000);

    expect(world.take()).toEqual([
      "hold va1",
      "publish vol-pv1 on id-n1",
      "attached va1",
      "publish vol-pv1 on id-n1",
      "attached va1",
    ]);
  });

  test("25, 27: the driver's error with its code, then success clears it", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.fail("publish", 8, "node is full");
    world.start();

    await world.createAttachment("va1");
    await world.settle();
    expect((await world.attachment("va1"))!.status).toEqual({
      attached: false,
      attachError: {
        time: expect.stringMatching(/^2026-01-01T00:00:\d\dZ$/) as string,
        message: "rpc error: code = ResourceExhausted desc = node is full",
        errorCode: 8,
      },
    });

    await world.advance(1_000);
    expect((await world.attachment("va1"))!.status).toEqual({ attached: true });
  });

  test("26: a publish without an answer: the finalizer stays, and it is tried again", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.spoil("publish", { kind: "hang" });
    world.start();

    await world.createAttachment("va1");
    await world.advance(15_500);
    const failed = (await world.attachment("va1"))!;
    expect(failed.status!.attachError!.message).toContain("code = DeadlineExceeded");
    expect(failed.metadata.finalizers).toEqual([F]);

    await world.advance(1_500);
    expect((await world.attachment("va1"))!.status).toEqual({ attached: true });
  });

  for (const [title, code, errorCodes] of [
    ["28: a failure that is not gRPC has no code", undefined, true],
    ["29: with the gate off no failure has", 8, false],
  ] as const) {
    test(title, async () => {
      const world = await given({ options: { errorCodes } });
      await world.createVolume("pv1");
      world.driver.fail("publish", code, "no");
      world.start();

      await world.createAttachment("va1");
      await world.settle();

      expect((await world.attachment("va1"))!.status!.attachError).not.toHaveProperty("errorCode");
    });
  }

  test("35: access modes that cannot be had together", async () => {
    const world = await given();
    await world.createVolume("pv1", { accessModes: ["ReadWriteOnce", "ReadOnlyMany"] });
    world.start();

    await world.createAttachment("va1");
    await world.settle();

    expect(world.take()).toEqual(["attachError va1"]);
    expect((await world.attachment("va1"))!.metadata.finalizers).toBeUndefined();
  });
});

describe("secrets", () => {
  const ref = { namespace: "default", name: "s1" };
  const csi = { driver: DRIVER, volumeHandle: "v", controllerPublishSecretRef: ref };

  for (const [title, data] of [
    ["8: what is in it is sent", { foo: "bar" }],
    ["9: an empty one is an empty map", {}],
  ] as const) {
    test(`${title}; it is read before anything is written`, async () => {
      const world = await given();
      await world.createSecret("s1", data);
      await world.createVolume("pv1", { csi });
      world.start();

      await world.createAttachment("va1");
      await world.settle();

      expect(world.take()).toEqual(["get secret s1", "hold va1", "publish v on id-n1", "attached va1"]);
      expect(world.driver.publishes[0]!.secrets!.reveal()).toEqual(data);
    });
  }

  test("10: a missing one: no finalizer, no publish, an error that names it, and a retry", async () => {
    const world = await given();
    await world.createVolume("pv1", { csi });
    world.start();

    await world.createAttachment("va1");
    await world.settle();
    expect(world.take()).toEqual(["get secret s1", "attachError va1"]);
    expect((await world.attachment("va1"))!.status!.attachError!.message).toContain("secret default/s1");

    await world.createSecret("s1", { foo: "bar" });
    await world.advance(1_000);
    expect((await world.attachment("va1"))!.status).toEqual({ attached: true });
  });

  test("never reach a status or the log, however the driver spells them", async () => {
    const world = await given();
    const password = 'hunter2 "quoted"/&';
    await world.createSecret("s1", { password });
    await world.createVolume("pv1", { csi });
    const spellings = [
      password,
      Buffer.from(password).toString("base64"),
      encodeURIComponent(password),
      JSON.stringify(password),
    ];
    world.driver.fail("publish", 13, `login with ${spellings.join(" and ")} failed`);
    world.start();

    await world.createAttachment("va1");
    await world.settle();

    const { message } = (await world.attachment("va1"))!.status!.attachError!;
    expect(message).toContain("code = Internal desc = login with ***stripped*** and");
    const told = message! + world.log.map(({ text }) => text).join("\n");
    for (const spelling of [...spellings, "hunter2"]) expect(told).not.toContain(spelling);
  });
});
