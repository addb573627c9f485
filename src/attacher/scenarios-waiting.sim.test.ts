import { describe, expect, test } from "vitest";
import { given } from "./stage.testing.ts";

describe("an attachment says what it waits for", () => {
  test("through a whole attach and detach: the API server, the driver, nothing", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.delayMs = 5_000;
    world.start();
    await world.settle();

    world.transport.spoil("hold va1", { kind: "delay", ms: 2_000 }, 1);
    await world.createAttachment("va1");
    await world.advance(1_000);
    expect(world.waitOf("va1")).toBe("api-request VolumeAttachment/va1");
    await world.advance(2_000);
    expect(world.waitOf("va1")).toBe("driver-attaching CSIDriver/csi.test");
    await world.advance(5_000);
    expect(world.report()).toEqual([
      {
        ...{ volumeAttachment: "va1", driver: "csi.test", node: "n1", persistentVolume: "pv1" },
        ...{ volumeHandle: "vol-pv1", state: "attached", failures: 0 },
      },
    ]);

    await world.deleteAttachment("va1");
    await world.advance(1_000);
    expect(world.waitOf("va1")).toBe("driver-detaching CSIDriver/csi.test");
    expect(world.report()[0]!.state).toBe("detaching");
    await world.advance(5_000);
    expect(world.report()).toEqual([]);
  });

  for (const [reason, sketch] of [
    ["volume-missing PersistentVolume/pv9", { volume: "pv9" }],
    ["node-unknown CSINode/n9", { node: "n9" }],
    ["secret-unavailable Secret/s9", { volume: "pv2" }],
    ["bad-access-modes PersistentVolume/pv3", { volume: "pv3" }],
    ["bad-source VolumeAttachment/va1", { volume: "pv4" }],
    ["volume-deleting PersistentVolume/pv5", { volume: "pv5" }],
  ] as const) {
    test(reason, async () => {
      const world = await given();
      await world.createVolume("pv1");
      const csi = { driver: "csi.test", volumeHandle: "v" };
      const controllerPublishSecretRef = { namespace: "default", name: "s9" };
      await world.createVolume("pv2", { csi: { ...csi, controllerPublishSecretRef } });
      await world.createVolume("pv3", { accessModes: ["ReadWriteOnce", "ReadOnlyMany"] });
      await world.createVolume("pv4", { nfs: { server: "s", path: "/" } });
      await world.createVolume("pv5");
      await world.deleteVolume("pv5");
      world.start();

      await world.createAttachment("va1", sketch);
      await world.settle();

      expect(world.waitOf("va1")).toBe(reason);
    });
  }

  test("after an error of the driver: its words, since when, and when it is tried again", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.trouble = () => ({ kind: "error", code: 13, text: "no" });
    world.start();
    await world.createAttachment("va1");
    await world.advance(3_500); // tries at 0, 1 and 3 s; the next comes at 7 s

    const [{ failures, waitingFor }] = world.report({ waitingOnly: true }) as [
      ReturnType<typeof world.report>[0],
    ];
    expect(failures).toBe(3);
    expect(waitingFor).toMatchObject({
      reason: "backoff",
      message: "rpc error: code = Internal desc = no",
    });
    expect(Date.parse(waitingFor!.until!) - world.clock.wall().getTime()).toBeGreaterThan(3_000);
    expect(Date.parse(waitingFor!.until!) - world.clock.wall().getTime()).toBeLessThanOrEqual(4_000);
  });

  test("while all workers are taken when its back-off is over: for a worker, and not for a time that has passed", async () => {
    const world = await given({ options: { workers: 1 } });
    await world.createVolume("pv1");
    await world.createVolume("pv2");
    world.start();
    world.driver.fail("publish", 14, "unavailable");
    await world.createAttachment("va1");
    await world.settle();
    expect(world.waitOf("va1")).toBe("backoff CSIDriver/csi.test");

    world.driver.delayMs = 5_000;
    await world.createAttachment("va2", { volume: "pv2" });
    await world.advance(3_000);
    expect(world.waitOf("va2")).toBe("driver-attaching CSIDriver/csi.test");
    expect(world.waitOf("va1")).toBe("worker CSIDriver/csi.test");

    await world.advance(5_000);
    expect(world.waitOf("va1")).toBe("driver-attaching CSIDriver/csi.test");
  });

  test("while all workers are taken: for a worker; a deletion replaces what the attach waited for", async () => {
    const world = await given({ options: { workers: 1 } });
    await world.createVolume("pv1");
    await world.createVolume("pv2");
    world.driver.trouble = (call) => (call === "publish" ? { kind: "hang" } : undefined);
    world.start();
    await world.createAttachment("va1");
    await world.settle();
    await world.createAttachment("va2", { volume: "pv2" });
    await world.settle();
    expect(world.waitOf("va2")).toBe("worker CSIDriver/csi.test");

    await world.deleteAttachment("va1");
    await world.settle();
    expect(world.waitOf("va1")).toBe("driver-attaching CSIDriver/csi.test");
    await world.advance(60_000);
    expect(await world.attachment("va1")).toBeUndefined();
    expect(world.report({ attachment: "va1" })).toEqual([]);
  });

  test("filters: by attachment, volume and node, those that wait, and no more than the limit", async () => {
    const world = await given();
    for (const n of [1, 2, 3]) await world.createVolume(`pv${n}`);
    world.start();
    await world.createAttachment("va1", { volume: "pv1" });
    await world.createAttachment("va2", { volume: "pv2", node: "n9" });
    await world.createAttachment("va3", { volume: "pv3", attacher: "other" });
    await world.settle();

    const names = (filter: object) => world.report(filter).map(({ volumeAttachment }) => volumeAttachment);
    expect(names({})).toEqual(["va1", "va2"]);
    expect(names({ waitingOnly: true })).toEqual(["va2"]);
    expect(names({ volume: "pv1" })).toEqual(["va1"]);
    expect(names({ node: "n9" })).toEqual(["va2"]);
    expect(names({ attachment: "va1", node: "n9" })).toEqual([]);
    expect(names({ limit: 1 })).toHaveLength(1);
  });
});

describe("asked to end", () => {
  test("it brings the publish under way to its end, status included, and takes nothing new", async () => {
    const world = await given();
    await world.createVolume("pv1");
    await world.createVolume("pv2");
    world.driver.delayMs = 5_000;
    world.start({ workers: 2 });
    await world.createAttachment("va1");
    await world.settle();

    const ended = world.stop();
    await world.createAttachment("va2", { volume: "pv2" });
    await world.advance(6_000);
    await ended;

    expect(world.take()).toEqual(["hold va1", "publish vol-pv1 on id-n1", "attached va1"]);
    expect((await world.attachment("va1"))!.status).toEqual({ attached: true });
  });

  test("it waits 20 s and no longer for a driver that does not answer", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.spoil("publish", { kind: "hang" });
    world.start({ timeoutMs: 300_000 });
    await world.createAttachment("va1");
    await world.settle();

    let over = false;
    void world.stop().then(() => (over = true));
    await world.advance(19_000);
    expect(over).toBe(false);
    await world.advance(1_100);
    expect(over).toBe(true);
  });

  test("because another replica leads, it writes nothing any more and waits for nobody", async () => {
    const world = await given();
    await world.createVolume("pv1");
    world.driver.delayMs = 5_000;
    world.start();
    await world.createAttachment("va1");
    await world.settle();
    world.take();

    world.depose();
    await world.advance(10_000);

    expect(world.take()).toEqual([]);
  });
});
