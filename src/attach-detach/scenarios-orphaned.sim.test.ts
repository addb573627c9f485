import { expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { DRIVER } from "../sim/cluster-objects.ts";

/**
 * A VolumeAttachment of ours that is not attached, whose PersistentVolume is gone, while a pod of the node wants the same disk by
 * another PersistentVolume: the attacher can do nothing with it, so it is deleted and made anew. Never while anything may use it.
 */

const FAILED = "persistentvolume pv-v not found";

interface Story {
  readonly attached?: boolean;
  readonly fails?: boolean;
  readonly inUse?: boolean;
  /** An attacher has added its finalizer. */
  readonly begun?: boolean;
  readonly before?: (world: AttachDetachWorld) => Promise<void>;
}

async function renamed({ attached = false, fails = true, inUse = false, begun = false, before }: Story = {}) {
  const world = await given({
    nodes: ["n1", "n2"],
    volumes: { v: {}, renamed: { handle: "v" }, lost: { claim: "pending", volume: "missing" } },
    attacher: "by-hand",
    started: false,
  });
  await world.hand.create("v", "n1", { attached });
  await world.deleteClaim("v");
  await world.deletePersistentVolume("v");
  if (inUse) await world.setInUse("n1", ["v"]);
  if (begun) await world.hand.hold("v", "n1");
  await before?.(world);
  world.startController();
  await world.createPod("web", { on: "n1", uses: ["renamed"] });
  await world.settle();
  if (fails && begun) await world.hand.failAttach("v", "n1", FAILED);
  // A PersistentVolume that is missing is missed before the finalizer is added.
  else if (fails)
    await world.hand.setStatus("v", "n1", { attached: false, attachError: { message: FAILED } });
  await world.advance(5_000);
  return world;
}

const deletes = (world: AttachDetachWorld) => world.requests().filter((line) => line.startsWith("DELETE"));

test("it is deleted, by uid, and made anew by the pod's PersistentVolume; the pod gets its disk", async () => {
  const world = await renamed();
  expect(deletes(world)).toEqual(["DELETE va v@n1"]);
  await world.hand.release("v", "n1");
  await world.settle();
  expect(world.attachmentOf("v", "n1")?.spec.source).toEqual({ persistentVolumeName: "pv-renamed" });

  await world.hand.attach("v", "n1");
  await world.settle();
  expect(world.attachedOf("n1")).toHaveLength(1);
  expect(deletes(world)).toHaveLength(1);
});

test("a node that lists the disk in use because a pod waits for it does not keep it, as no attacher has begun", async () => {
  const world = await renamed({ inUse: true });
  await world.settle();

  expect(deletes(world)).toEqual(["DELETE va v@n1"]);
  expect(world.attachmentOf("v", "n1")?.spec.source).toEqual({ persistentVolumeName: "pv-renamed" });
});

for (const [what, story] of [
  ["that is attached", { attached: true, fails: false }],
  ["of which its attacher has not said that it cannot", { fails: false }],
  ["with which an attacher has begun, while the node uses the disk", { inUse: true, begun: true }],
  [
    "while somebody else has attached the disk there",
    {
      before: async (world: AttachDetachWorld) => {
        const csi = { driver: DRIVER, volumeHandle: "v" };
        const source = { inlineVolumeSpec: { accessModes: ["ReadWriteOnce"], csi } };
        const spec = { attacher: DRIVER, nodeName: "n1", source };
        await world.client.create(volumeAttachments, { metadata: { name: "by-hand" }, spec });
      },
    },
  ],
  [
    "while a pod of the node may use the disk by a claim that cannot be followed",
    { before: (world: AttachDetachWorld) => world.createPod("other", { on: "n1", uses: ["v"] }) },
  ],
] as const)
  test(`one ${what} is not deleted`, async () => {
    const world = await renamed(story);
    await world.advance(10 * 60_000);

    expect(deletes(world)).toEqual([]);
  });

test("one whose PersistentVolume comes back in time is not deleted", async () => {
  const world = await renamed({ fails: false });
  await world.createPersistentVolume("v");
  await world.hand.failAttach("v", "n1", "the rack is dark");
  await world.advance(10 * 60_000);

  expect(deletes(world)).toEqual([]);
});

test("the node begins to use the disk while it is looked at: it stays", async () => {
  const world = await renamed({ fails: false });
  world.spoil("GET node n1", { kind: "delay", ms: 2_000 }, 1);
  world.held.add("nodes");
  await world.hand.failAttach("v", "n1", FAILED);
  await world.advance(1_000);
  await world.setInUse("n1", ["v"]);
  await world.advance(60_000);

  expect(deletes(world)).toEqual([]);
});

test("a pod whose claim was made again for a renamed PersistentVolume is attached by that one, also after it was found missing", async () => {
  const world = await given({
    nodes: ["n1"],
    volumes: { v: {}, renamed: { handle: "v", claim: "missing", volume: "missing" } },
    attacher: "by-hand",
  });
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.settle();
  expect(world.attachmentOf("v", "n1")?.spec.source).toEqual({ persistentVolumeName: "pv-v" });
  await world.setInUse("n1", ["v"]);

  await world.deleteClaim("v");
  await world.deletePersistentVolume("v");
  await world.createClaim("default/claim-v", { volumeName: "pv-renamed", bound: true });
  await world.createPersistentVolume("renamed", "default/claim-v");
  await world.settle();
  await world.hand.setStatus("v", "n1", { attached: false, attachError: { message: FAILED } });
  await world.advance(5_000);

  expect(world.attachmentOf("v", "n1")?.spec.source).toEqual({ persistentVolumeName: "pv-renamed" });
  expect(deletes(world)).toEqual(["DELETE va v@n1"]);
});

test("an attacher that begins between the look and the DELETE keeps it: that version is no longer there", async () => {
  const world = await renamed({ inUse: true, fails: false });
  world.spoil("GET va v@n1", { kind: "answer-late", ms: 1_000 }, 1);
  await world.hand.setStatus("v", "n1", { attached: false, attachError: { message: FAILED } });
  const looked = () => world.requests().includes("GET va v@n1");
  expect(await world.scheduler.runUntilTrue(looked, { withinMs: 60_000 })).toBe(true);

  await world.hand.hold("v", "n1");
  await world.advance(60_000);

  expect(deletes(world)).toEqual(["DELETE va v@n1"]);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeUndefined();
  expect(world.attachmentOf("v", "n1")?.spec.source).toEqual({ persistentVolumeName: "pv-v" });
});
