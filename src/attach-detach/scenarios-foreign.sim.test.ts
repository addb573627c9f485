import { describe, expect, test } from "vitest";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { volumeAttachments, type VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { events, type KubeEvent } from "../kube/api/event.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { DRIVER } from "../sim/cluster-objects.ts";
import { HANDLE_ANNOTATION, volumeAttachmentName } from "../volumes/names.ts";

/**
 * VolumeAttachments that somebody else made, and PersistentVolumes that were renamed or replaced: what a volume is, and who
 * has it, is told by driver and handle. docs/decisions/0009-foreign-volume-attachments.md says why.
 */

const POD = { web: { on: "n1", uses: ["v"] } };
const OWN = ["POST va v@n1", "PATCH node n1 [v]"];

interface Made {
  readonly name?: string;
  readonly volume?: string;
  readonly node?: string;
  readonly attacher?: string;
  readonly source?: VolumeAttachment["spec"]["source"];
  readonly annotations?: Record<string, string>;
}

/** Somebody with kubectl, or another tool. */
async function make(world: AttachDetachWorld, made: Made = {}): Promise<void> {
  const { name = "by-hand", volume = "v", node = "n1", attacher = DRIVER, annotations = {} } = made;
  const source = made.source ?? { persistentVolumeName: `pv-${volume}` };
  const metadata = { name, annotations };
  await world.client.create(volumeAttachments, { metadata, spec: { attacher, nodeName: node, source } });
  await world.settle();
}

const find = (world: AttachDetachWorld, name = "by-hand") => world.read(volumeAttachments, { name });

async function remove(world: AttachDetachWorld, name = "by-hand"): Promise<void> {
  await world.client.delete(volumeAttachments, { name });
  await world.settle();
}

function nodeEvents(world: AttachDetachWorld, reason: string): string[] {
  return world
    .list(events)
    .filter((event: KubeEvent) => event.reason === reason)
    .map(({ message = "" }) => message);
}

const report = (world: AttachDetachWorld, node: string) =>
  world.controller.controller.report({ node }).volumes;

describe("a VolumeAttachment under a foreign name", () => {
  test("is never deleted, whether a pod uses the volume there or not", async () => {
    const world = await given({ nodes: ["n1"], pods: POD, kubelets: true });
    await make(world);
    await world.advance(10 * 60_000);
    expect(find(world)?.metadata.deletionTimestamp).toBeUndefined();
    expect(world.pod("web")?.status?.phase).toBe("Running");

    await world.removePod("web");
    await world.advance(10 * 60_000);

    expect(find(world)?.metadata.deletionTimestamp).toBeUndefined();
    expect(world.requests().filter((line) => line.includes("by-hand"))).toEqual([]);
    expect(world.violations).toEqual([]);
  });

  test("keeps a volume of one node from every other node, and lets it go when its owner deletes it", async () => {
    const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} } });
    await make(world);
    await world.createPod("web", { on: "n2", uses: ["v"] });
    await world.advance(10 * 60_000);
    expect(world.attachmentOf("v", "n2")).toBeUndefined();
    const [wait] = report(world, "n2");
    expect(wait?.waitingFor?.reason).toBe("held-by-other-node");
    expect(wait?.waitingFor?.message).toContain("VolumeAttachment by-hand");

    await remove(world);

    expect(world.volumesAttached("n2")).toEqual(["v"]);
    expect(world.violations).toEqual([]);
  });

  for (const attached of [true, false]) {
    test(`found at the start (attached ${attached}) it counts as well`, async () => {
      const world = await given({
        nodes: ["n1", "n2"],
        volumes: { v: {} },
        attacher: attached ? "auto" : "by-hand",
        started: false,
      });
      await make(world);
      await world.createPod("web", { on: "n2", uses: ["v"] });

      world.startController();
      await world.advance(10 * 60_000);

      expect(world.attachmentOf("v", "n2")).toBeUndefined();
      expect(find(world)?.metadata.deletionTimestamp).toBeUndefined();
    });
  }

  test("of a volume that several nodes may have keeps nobody away", async () => {
    const world = await given({ nodes: ["n1", "n2"], volumes: { v: { modes: ["ReadWriteMany"] } } });
    await make(world);

    await world.createPod("web", { on: "n2", uses: ["v"] });
    await world.settle();

    expect(world.volumesAttached("n2")).toEqual(["v"]);
  });

  test("on the pod's own node does not keep the pod from starting; ours is made beside it", async () => {
    const world = await given({ nodes: ["n1"], volumes: { v: {} } });
    await make(world);

    await world.createPod("web", { on: "n1", uses: ["v"] });
    await world.settle();

    expect(world.requests()).toEqual(OWN);
  });

  test("keeps ours on the node too: a detach of ours would take the disk from whoever made it", async () => {
    const world = await given({ nodes: ["n1"], pods: POD });
    await make(world);
    world.forget();

    await world.removePod("web");
    await world.advance(30 * 60_000);

    expect(world.requests()).toEqual([]);
    const [held] = report(world, "n1");
    expect(held?.waitingFor).toMatchObject({ reason: "foreign-attachment", frozen: true });

    await remove(world);
    expect(world.requests()).toEqual(["PATCH node n1 []", "GET node n1", "DELETE va v@n1"]);
  });

  test("that is being deleted is waited for: its detach would come after our attach", async () => {
    const world = await given({ nodes: ["n1"], volumes: { v: {} } });
    await make(world);
    world.attacherOf(DRIVER).delayMs = 5_000;
    await remove(world);

    await world.createPod("web", { on: "n1", uses: ["v"] });
    await world.advance(2_000);
    expect(world.requests()).toEqual([]);

    await world.advance(15_000);
    expect(world.volumesAttached("n1")).toEqual(["v"]);
    expect(world.storages.publishedOn(world.labels.uniqueName("v"))).toEqual(["n1"]);
  });

  test("that appears while ours is attached elsewhere and not in use: ours gives way", async () => {
    const world = await given({ nodes: ["n1", "n2"], pods: { web: { on: "n2", uses: ["v"] } } });
    expect(world.volumesAttached("n2")).toEqual(["v"]);

    await make(world);
    await world.advance(5_000);

    expect(world.attachmentOf("v", "n2")).toBeUndefined();
    expect(find(world)).toBeDefined();
  });

  test("that appears while ours is attached elsewhere and in use takes nothing from the pod", async () => {
    const world = await given({
      nodes: ["n1", "n2"],
      pods: { web: { on: "n2", uses: ["v"] } },
      kubelets: true,
    });
    expect(world.pod("web")?.status?.phase).toBe("Running");
    world.forget();

    await make(world);
    await world.advance(10 * 60_000);

    expect(world.requests()).toEqual([]);
    const [held] = report(world, "n2");
    expect(held?.waitingFor?.message).toContain("VolumeAttachment by-hand");
  });

  test("is shown: in the report, and once as an event of its node", async () => {
    const world = await given({ nodes: ["n1"], pods: POD });
    await make(world);
    await world.advance(10 * 60_000);

    expect(report(world, "n1")).toMatchObject([
      { volume: world.labels.uniqueName("v"), state: "attached", foreignAttachments: ["by-hand"] },
    ]);
    const told = nodeEvents(world, "ForeignAttachment");
    expect(told).toHaveLength(1);
    expect(told[0]).toContain("VolumeAttachment by-hand");
  });

  test("with the volume written into it counts the same", async () => {
    const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} } });
    const csi = { driver: DRIVER, volumeHandle: "v" };
    await make(world, { source: { inlineVolumeSpec: { accessModes: ["ReadWriteOnce"], csi } } });

    await world.createPod("web", { on: "n2", uses: ["v"] });
    await world.advance(10 * 60_000);

    expect(world.attachmentOf("v", "n2")).toBeUndefined();
    expect(find(world)?.metadata.deletionTimestamp).toBeUndefined();
  });

  test("whose PersistentVolume is gone is known by the handle its attacher recorded", async () => {
    const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} }, started: false });
    await make(world, {
      source: { persistentVolumeName: "pv-before" },
      annotations: { [HANDLE_ANNOTATION]: "v" },
    });
    world.startController();

    await world.createPod("web", { on: "n2", uses: ["v"] });
    await world.advance(10 * 60_000);

    expect(world.attachmentOf("v", "n2")).toBeUndefined();
    expect(find(world)?.metadata.deletionTimestamp).toBeUndefined();
  });

  test("that nobody can read counts for what its node uses of its driver", async () => {
    const world = await given({
      nodes: { n1: { inUse: ["v"] }, n2: {} },
      volumes: { v: {}, other: {} },
      started: false,
    });
    await make(world, { source: { persistentVolumeName: "pv-before" } });
    world.startController();

    await world.createPod("web", { on: "n2", uses: ["v"] });
    await world.createPod("db", { on: "n2", uses: ["other"] });
    await world.advance(10 * 60_000);
    expect(world.volumesAttached("n2")).toEqual(["other"]);
    expect(find(world)?.metadata.deletionTimestamp).toBeUndefined();

    await world.setInUse("n1", []);
    await world.settle();
    expect(world.volumesAttached("n2")).toEqual(["other", "v"]);
  });
});

describe("what becomes of it while the controller runs", () => {
  test("its PersistentVolume goes: what was read of it stays true", async () => {
    const world = await given({ nodes: ["n1", "n2"], volumes: { v: {}, renamed: { handle: "v" } } });
    await make(world);
    await world.deletePersistentVolume("v");
    const value = { metadata: { labels: { seen: "again" } } };
    await world.client.patch(volumeAttachments, { name: "by-hand" }, { type: "merge", value });

    await world.createPod("web", { on: "n2", uses: ["renamed"] });
    await world.advance(10 * 60_000);

    expect(world.attachmentOf("v", "n2")).toBeUndefined();
  });

  test("its PersistentVolume becomes another disk: it holds that one as well", async () => {
    const world = await given({
      nodes: ["n1", "n2"],
      volumes: { v: {}, another: {} },
      pods: { web: { on: "n1", uses: ["v"] } },
    });
    await world.deletePersistentVolume("v");
    const csi = { driver: DRIVER, volumeHandle: "another" };
    const spec = { accessModes: ["ReadWriteOnce"], csi, capacity: { storage: "1Gi" } };
    await world.client.create(persistentVolumes, { metadata: { name: "pv-v" }, spec });
    await world.settle();

    await world.createPod("db", { on: "n2", uses: ["another"] });
    await world.removePod("web");
    await world.advance(10 * 60_000);

    expect(world.volumesAttached("n2")).toEqual([]);
    expect(world.requests().filter((line) => line.startsWith("DELETE"))).toEqual([]);
  });

  test("it appears while ours is about to be detached: ours stays", async () => {
    const world = await given({ nodes: ["n1"], pods: POD });
    world.spoil("GET node n1", { kind: "delay", ms: 5_000 }, 1);
    await world.removePod("web");
    await world.settle();
    await make(world);

    await world.advance(10 * 60_000);

    expect(world.requests().filter((line) => line.startsWith("DELETE"))).toEqual([]);
  });
});

describe("a name like ours with other content", () => {
  const wrong = volumeAttachmentName({ driver: DRIVER, volumeHandle: "w" }, "n1");

  test("is never deleted, holds what it says, and keeps the volume whose name it has away from others", async () => {
    const world = await given({ nodes: ["n1", "n2"], volumes: { v: {}, w: {} } });
    await make(world, { name: wrong, volume: "v" });

    await world.createPod("web", { on: "n2", uses: ["v"] });
    await world.createPod("db", { on: "n2", uses: ["w"] });
    await world.advance(30 * 60_000);

    expect(world.volumesAttached("n2")).toEqual([]);
    expect(find(world, wrong)?.metadata.deletionTimestamp).toBeUndefined();
  });

  test("is not taken for ours by a pod of its node", async () => {
    const world = await given({ nodes: ["n1"], volumes: { v: {}, w: {} } });
    await make(world, { name: wrong, volume: "v" });

    await world.createPod("db", { on: "n1", uses: ["w"] });
    await world.advance(5 * 60_000);

    expect(world.volumesAttached("n1")).toEqual([]);
    expect(report(world, "n1").find(({ wantedBy }) => wantedBy.length > 0)?.waitingFor?.reason).toBe(
      "attachment-mismatch",
    );
    // It never was.
    expect(nodeEvents(world, "VolumeFrozen")).toEqual([expect.stringContaining("^w is not attached: ")]);
  });

  test("made by replacing the PersistentVolume with one of another disk: nothing is detached or attached twice", async () => {
    const world = await given({ nodes: ["n1", "n2"], pods: POD });
    await world.deletePersistentVolume("v");
    const csi = { driver: DRIVER, volumeHandle: "another" };
    const spec = { accessModes: ["ReadWriteOnce"], csi, capacity: { storage: "1Gi" } };
    await world.client.create(persistentVolumes, { metadata: { name: "pv-v" }, spec });
    world.forget();

    await world.restartController();
    await world.removePod("web");
    await world.advance(30 * 60_000);

    expect(world.requests().filter((line) => line.startsWith("DELETE"))).toEqual([]);
  });
});

describe("a PersistentVolume that was renamed", () => {
  /** `v` and `renamed` are one disk; the attachment of n1 names `pv-v`, which is gone. */
  const renamed = () =>
    given({
      nodes: { n1: { inUse: ["v"] }, n2: {} },
      volumes: { v: { volume: "missing", claim: "missing" }, renamed: { handle: "v" } },
      attachments: [{ volume: "v", node: "n1", attached: true }],
      attacher: "by-hand",
    });

  for (const when of ["while it runs", "before it starts"] as const) {
    test(`${when}: the old attachment's node still holds the disk`, async () => {
      const world = await renamed();
      await world.createPod("web", { on: "n2", uses: ["renamed"] });
      if (when === "before it starts") await world.restartController();
      await world.advance(10 * 60_000);
      expect(world.attachmentOf("renamed", "n2")).toBeUndefined();
      expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeUndefined();

      await world.setInUse("n1", []);
      await world.settle();
      expect(world.requests()).toContain("DELETE va v@n1");
      await world.hand.release("v", "n1");
      await world.settle();

      expect(world.attachmentOf("renamed", "n2")).toBeDefined();
    });
  }

  test("a pod of the new name on the old node keeps the old attachment", async () => {
    const world = await given({
      nodes: ["n1"],
      volumes: { v: { volume: "missing", claim: "missing" }, renamed: { handle: "v" } },
      attachments: [{ volume: "v", node: "n1", attached: true }],
      pods: { web: { on: "n1", uses: ["renamed"] } },
      attacher: "by-hand",
    });
    await world.advance(10 * 60_000);

    expect(world.volumesAttached("n1")).toEqual(["v"]);
    expect(world.requests().filter((line) => line.startsWith("DELETE"))).toEqual([]);
  });

  test("a pod of the new name that comes while the old attachment is about to go keeps it", async () => {
    const world = await given({
      nodes: ["n1"],
      volumes: { v: { volume: "missing", claim: "missing" }, renamed: { handle: "v" } },
      attachments: [{ volume: "v", node: "n1", attached: true }],
      attacher: "by-hand",
      started: false,
    });
    world.startController();
    world.spoil("GET node n1", { kind: "delay", ms: 5_000 }, 1);
    await world.settle();
    await world.createPod("web", { on: "n1", uses: ["renamed"] });
    await world.settle();
    expect(world.volumesAttached("n1")).toEqual([]);

    await world.advance(10 * 60_000);

    expect(world.requests().filter((line) => line.startsWith("DELETE"))).toEqual([]);
    expect(world.volumesAttached("n1")).toEqual(["v"]);
  });

  test("two names for one disk at once: pods on two nodes get it one after the other", async () => {
    const world = await given({
      nodes: ["n1", "n2"],
      volumes: { v: {}, renamed: { handle: "v" } },
      pods: { web: { on: "n1", uses: ["v"] }, db: { on: "n2", uses: ["renamed"] } },
    });
    await world.advance(60_000);
    expect(world.storages.publishedOn(world.labels.uniqueName("v"))).toHaveLength(1);
    expect(world.violations).toEqual([]);
  });

  test("two names for one disk, of which one allows several nodes: the stricter one decides", async () => {
    const world = await given({
      nodes: ["n1", "n2"],
      volumes: { v: {}, renamed: { handle: "v", modes: ["ReadWriteMany"] } },
      pods: { web: { on: "n1", uses: ["v"] } },
    });
    await world.createPod("db", { on: "n2", uses: ["renamed"] });
    await world.advance(60_000);
    expect(world.storages.publishedOn(world.labels.uniqueName("v"))).toEqual(["n1"]);

    await world.removePod("web");
    await world.advance(1_000);
    expect(world.storages.publishedOn(world.labels.uniqueName("v"))).toEqual(["n2"]);
  });
});

describe("what a node uses goes by the disk, not by its name", () => {
  test("an in-tree name in volumesInUse keeps the translated volume attached", async () => {
    const disk = {
      driver: "ebs.csi.aws.com",
      handle: "vol-1",
      source: { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1" } },
    };
    const world = await given({
      nodes: { n1: { inUse: ["kubernetes.io/aws-ebs/aws://us-east-1a/vol-1"] } },
      volumes: { disk },
      attachments: [{ volume: "disk", node: "n1", attached: true }],
    });
    await world.advance(30 * 60_000);
    expect(world.requests()).toEqual([]);

    await world.setInUse("n1", []);
    await world.settle();
    expect(world.requests()).toEqual(["GET node n1", "DELETE va disk@n1"]);
  });
});

/** The requests of Kubernetes' conformance specs "VolumeAttachment, lifecycle" and "apply changes to a status". */
describe("the conformance specs of VolumeAttachments", () => {
  const spec = (pv: string) => ({
    attacher: "e2e-test.storage.k8s.io",
    nodeName: "n1",
    source: { persistentVolumeName: pv },
  });

  async function patched(world: AttachDetachWorld, name: string, value: object, subresource?: "status") {
    return world.client.patch(volumeAttachments, { name }, { type: "merge", value }, { subresource });
  }

  test("lifecycle: what they create is there until they delete it", async () => {
    const world = await given({ nodes: ["n1"], pods: POD });
    world.forget();
    await world.client.create(volumeAttachments, { metadata: { name: "va-e2e-1" }, spec: spec("pv-e2e-1") });
    await world.advance(30_000);

    const first = await patched(world, "va-e2e-1", { metadata: { labels: { "va-e2e-1": "patched" } } });
    expect(first.metadata.labels).toEqual({ "va-e2e-1": "patched" });
    await world.advance(30_000);
    await world.client.delete(volumeAttachments, { name: "va-e2e-1" });
    await world.advance(30_000);
    expect(find(world, "va-e2e-1")).toBeUndefined();

    for (const name of ["va-e2e-2", "va-e2e-3"]) {
      await world.client.create(volumeAttachments, { metadata: { name }, spec: spec(`pv-${name}`) });
      await world.advance(30_000);
      const current = await world.client.get(volumeAttachments, { name });
      const labels = { "va-e2e": "updated" };
      const updated = await world.client.update(volumeAttachments, {
        ...current,
        metadata: { ...current.metadata, labels },
      });
      expect(updated.metadata.labels).toEqual(labels);
      await world.advance(30_000);
    }
    for (const name of ["va-e2e-2", "va-e2e-3"]) {
      expect(find(world, name)?.metadata.deletionTimestamp).toBeUndefined();
      await world.client.delete(volumeAttachments, { name });
    }
    await world.advance(30_000);

    expect(world.requests()).toEqual([]);
  });

  test("status: it stays what they write", async () => {
    const world = await given({ nodes: ["n1"], pods: POD });
    world.forget();
    await world.client.create(volumeAttachments, { metadata: { name: "va-e2e-4" }, spec: spec("pv-e2e-4") });
    for (const attached of [true, false]) {
      await world.advance(30_000);
      const written = await patched(world, "va-e2e-4", { status: { attached } }, "status");
      expect(written.status?.attached).toBe(attached);
      await world.advance(30_000);
      expect(find(world, "va-e2e-4")?.status?.attached).toBe(attached);
    }
    await world.client.delete(volumeAttachments, { name: "va-e2e-4" });
    await world.advance(30_000);

    expect(find(world, "va-e2e-4")).toBeUndefined();
    expect(world.requests()).toEqual([]);
  });
});
