import { describe, expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { given } from "./attach-detach-world.ts";
import { DRIVER } from "./cluster-objects.ts";

const FINALIZER = "external-attacher/csi-example-com";

async function givenAttacher() {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} }, started: false });
  const remove = async (node: string) => {
    await world.client.delete(volumeAttachments, { name: world.labels.attachmentName("v", node) });
    await world.settle();
  };
  const create = async (node: string) => {
    await world.hand.create("v", node);
    await world.settle();
  };
  return { world, attacher: world.attacherOf(DRIVER), create, remove };
}

describe("the simulated external-attacher", () => {
  test("publishes, holds the object with its finalizer, and says attached", async () => {
    const { world, create } = await givenAttacher();

    await create("n1");

    const attachment = world.attachmentOf("v", "n1");
    expect(attachment?.status).toEqual({ attached: true });
    expect(attachment?.metadata.finalizers).toEqual([FINALIZER]);
    expect(world.storages.publishedOn(world.labels.uniqueName("v"))).toEqual(["n1"]);
  });

  test("a deleted attachment is unpublished before it goes", async () => {
    const { world, create, remove } = await givenAttacher();
    await create("n1");

    await remove("n1");

    expect(world.attachmentOf("v", "n1")).toBeUndefined();
    expect(world.storages.calls).toEqual(["publish n1", "unpublish n1"]);
  });

  test("a failure is shown in the status, and tried again after a second", async () => {
    const { world, attacher, create, remove } = await givenAttacher();
    attacher.failAttaches(1, "disk full");
    attacher.failDetaches(1, "busy");

    await create("n1");
    expect(world.attachmentOf("v", "n1")?.status).toMatchObject({
      attached: false,
      attachError: { message: "disk full" },
    });
    await world.advance(1_000);
    expect(world.attachmentOf("v", "n1")?.status).toEqual({ attached: true });

    await remove("n1");
    expect(world.attachmentOf("v", "n1")?.status?.detachError?.message).toBe("busy");
    await world.advance(1_000);
    expect(world.attachmentOf("v", "n1")).toBeUndefined();
  });

  test("slow or hanging, it answers late", async () => {
    const { world, attacher, create } = await givenAttacher();
    attacher.delayMs = 5_000;
    attacher.hangs = true;

    await create("n1");
    await world.advance(60_000);
    expect(world.attachmentOf("v", "n1")?.status?.attached).toBe(false);
    attacher.hangs = false;
    await world.settle();

    expect(world.attachmentOf("v", "n1")?.status?.attached).toBe(true);
  });

  test("the checker notices a volume for one node on two", async () => {
    const { world, create } = await givenAttacher();

    await create("n1");
    expect(world.violations).toEqual([]);
    await create("n2");

    expect(world.violations).toEqual([
      `published-once: ${world.labels.uniqueName("v")} is published on n1 and n2`,
    ]);
  });

  test("the checker notices a volume taken from a kubelet that has it mounted, unless that is dead", async () => {
    for (const alive of [true, false]) {
      const world = await given({
        nodes: ["n1"],
        kubelets: true,
        started: false,
        pods: { web: { on: "n1", uses: ["v"] } },
      });
      await world.hand.create("v", "n1");
      await world.settle();
      await world.setAttached("n1", ["v"]);
      await world.settle();
      if (!alive) world.stopKubelet("n1");

      await world.client.delete(volumeAttachments, { name: world.labels.attachmentName("v", "n1") });
      await world.settle();

      expect(world.violations.length).toBe(alive ? 1 : 0);
    }
  });
});
