import { describe, expect, test } from "vitest";
import { nodes } from "../kube/api/node.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { DRIVER } from "../sim/cluster-objects.ts";
import { HANDLE_ANNOTATION } from "../volumes/names.ts";

/**
 * A VolumeAttachment that is known by its name alone, because its PersistentVolume is gone, and then becomes something else
 * under that name: its PersistentVolume comes back, or it is deleted and made anew, while its detach is under way or while
 * nobody watches.
 */

const RENAMED = { v: { volume: "missing", claim: "missing" }, other: {} } as const;

const sent = (world: AttachDetachWorld, verb: string) =>
  world.requests().filter((line) => line.startsWith(verb));

/** Deleted by hand and made anew under the same name, for another volume and node. */
async function remake(world: AttachDetachWorld, { volume = "other", node = "n2" } = {}): Promise<string> {
  const name = world.labels.attachmentName("v", "n1");
  await world.hand.removeByHand("v", "n1");
  const source = { persistentVolumeName: `pv-${volume}` };
  await world.client.create(volumeAttachments, {
    metadata: { name },
    spec: { attacher: DRIVER, nodeName: node, source },
  });
  return name;
}

describe("a VolumeAttachment known by its name alone", () => {
  test("that becomes another's while its detach is about to begin is not deleted", async () => {
    const world = await given({
      nodes: ["n1", "n2"],
      volumes: RENAMED,
      attachments: [{ volume: "v", node: "n1", attached: true }],
      attacher: "by-hand",
      started: false,
    });
    world.startController();
    world.spoil("GET node n1", { kind: "delay", ms: 5_000 }, 1);
    await world.settle();
    const name = await remake(world);
    await world.advance(10 * 60_000);

    expect(world.read(volumeAttachments, { name })?.metadata.deletionTimestamp).toBeUndefined();
    expect(sent(world, "DELETE")).toEqual([]);
  });

  test("that becomes another's while nobody watches is not deleted", async () => {
    const world = await given({
      nodes: { n1: { inUse: ["v"] }, n2: {} },
      volumes: RENAMED,
      attachments: [{ volume: "v", node: "n1", attached: true }],
      attacher: "by-hand",
    });
    world.cutOff();
    const name = await remake(world);
    await world.setInUse("n1", []);
    await world.reconnect();
    await world.advance(10 * 60_000);

    expect(world.read(volumeAttachments, { name })?.metadata.deletionTimestamp).toBeUndefined();
    expect(sent(world, "DELETE")).toEqual([]);
  });

  test("that becomes another's while nobody watches holds its old node no longer", async () => {
    const world = await given({
      nodes: { n1: {}, n2: {}, n3: {} },
      volumes: { ...RENAMED, renamed: { handle: "v" } },
      attachments: [{ volume: "v", node: "n1", attached: true }],
      attacher: "by-hand",
      started: false,
    });
    await world.setInUse("n1", ["v"]);
    world.startController();
    await world.createPod("web", { on: "n3", uses: ["renamed"] });
    await world.settle();
    expect(world.attachmentOf("renamed", "n3")).toBeUndefined();
    world.cutOff();
    const name = await remake(world);
    await world.setInUse("n1", []);
    await world.reconnect();
    await world.advance(60_000);
    await world.client.delete(volumeAttachments, { name });
    await world.advance(10 * 60_000);

    expect(world.attachmentOf("renamed", "n3")).toBeDefined();
  });

  for (const when of ["before its DELETE", "and its driver fails"] as const) {
    test(`whose PersistentVolume and pod come back during its detach ${when}: the pod keeps it, and no request is repeated without end`, async () => {
      const world = await given({
        nodes: ["n1"],
        volumes: { v: { volume: "missing" } },
        attachments: [{ volume: "v", node: "n1", attached: true }],
        attacher: "by-hand",
        started: false,
      });
      world.startController();
      const early = when === "before its DELETE";
      if (early) world.spoil("GET node n1", { kind: "delay", ms: 5_000 }, 1);
      await world.settle();
      await world.createPersistentVolume("v");
      await world.bindClaim("v");
      await world.createPod("web", { on: "n1", uses: ["v"] });
      await world.settle();
      if (!early) await world.hand.failDetach("v", "n1", "no");
      world.forget();
      await world.advance(60_000);

      if (!early) await world.hand.release("v", "n1");
      await world.advance(60_000);
      if (!early) await world.hand.attach("v", "n1");
      await world.advance(60_000);
      expect(world.volumesAttached("n1")).toEqual(["v"]);
      expect(world.requests().length).toBeLessThan(40);
    }, 20_000);
  }

  test("that a node says it has attached, and which is somebody else's, is not deleted at the start", async () => {
    const world = await given({ nodes: ["n1"], volumes: { v: {} }, started: false });
    const spec = { attacher: DRIVER, nodeName: "n1", source: { persistentVolumeName: "pv-v" } };
    await world.client.create(volumeAttachments, { metadata: { name: "by-hand" }, spec });
    const volumesAttached = [{ name: "volumeattachment:by-hand", devicePath: "" }];
    await world.client.patch(
      nodes,
      { name: "n1" },
      { type: "merge", value: { status: { volumesAttached } } },
      { subresource: "status" },
    );
    world.startController();
    await world.advance(10 * 60_000);

    expect(world.read(volumeAttachments, { name: "by-hand" })?.metadata.deletionTimestamp).toBeUndefined();
    expect(sent(world, "DELETE")).toEqual([]);
  });
});

test("a VolumeAttachment that came to stand for another disk says nothing about the one a pod runs on", async () => {
  const world = await given({
    nodes: ["n1"],
    pods: { web: { on: "n1", uses: ["v"] } },
    attacher: "by-hand",
  });
  await world.hand.attach("v", "n1");
  await world.settle();
  await world.setInUse("n1", ["v"]);
  await world.deletePersistentVolume("v");
  const csi = { driver: DRIVER, volumeHandle: "another" };
  const spec = { accessModes: ["ReadWriteOnce"], csi, capacity: { storage: "1Gi" } };
  await world.client.create(persistentVolumes, { metadata: { name: "pv-v" }, spec });
  await world.settle();
  await world.hand.setStatus("v", "n1", { attached: false });
  await world.advance(10 * 60_000);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
  expect(sent(world, "DELETE")).toEqual([]);
});

describe("a VolumeAttachment of somebody else's under a name of ours", () => {
  test("stays somebody else's when its PersistentVolume goes", async () => {
    const world = await given({ nodes: ["n1", "n2"], volumes: { v: {}, other: {} }, attacher: "by-hand" });
    const name = world.labels.attachmentName("v", "n1");
    await world.client.create(volumeAttachments, {
      metadata: { name },
      spec: { attacher: DRIVER, nodeName: "n2", source: { persistentVolumeName: "pv-other" } },
    });
    await world.settle();

    const value = { metadata: { finalizers: null } };
    await world.client.patch(persistentVolumes, { name: "pv-other" }, { type: "merge", value });
    await world.client.delete(persistentVolumes, { name: "pv-other" });
    await world.settle();
    // The word about it by which it was taken for one that is known by its name alone.
    await world.client.patch(
      volumeAttachments,
      { name },
      { type: "merge", value: { metadata: { labels: { touched: "yes" } } } },
    );
    await world.advance(10 * 60_000);

    expect(world.read(volumeAttachments, { name })?.metadata.deletionTimestamp).toBeUndefined();
    expect(sent(world, "DELETE")).toEqual([]);
  });

  test("stays somebody else's when its PersistentVolume goes before a new leader comes, where its disk is recorded", async () => {
    const world = await given({
      nodes: ["n1", "n2"],
      volumes: { v: {}, other: { volume: "missing", claim: "missing" } },
      attacher: "by-hand",
      started: false,
    });
    const name = world.labels.attachmentName("v", "n1");
    const metadata = { name, annotations: { [HANDLE_ANNOTATION]: "other" } };
    const spec = { attacher: DRIVER, nodeName: "n2", source: { persistentVolumeName: "pv-other" } };
    await world.client.create(volumeAttachments, { metadata, spec });
    world.startController();
    await world.advance(10 * 60_000);

    expect(sent(world, "DELETE")).toEqual([]);
    const [held] = world.controller.controller.report({ node: "n2" }).volumes;
    expect(held).toMatchObject({ volume: world.labels.uniqueName("other"), foreignAttachments: [name] });
  });
});
