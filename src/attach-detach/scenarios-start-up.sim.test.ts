import { expect, test } from "vitest";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";

/** Scenarios 81 to 94 of the specification. */

const DETACH = ["PATCH node n1 []", "GET node n1", "DELETE va v@n1"];
const ATTACHMENT = [{ volume: "v", node: "n1", attached: true }];
/** Neither claim nor PersistentVolume. */
const GONE = { claim: "missing", volume: "missing" } as const;
const POD = { web: { on: "n1", uses: ["v"] } };

const writes = (world: AttachDetachWorld) => world.requests().filter((line) => !line.startsWith("GET"));

test("81: what is attached and wanted is left as it is", async () => {
  const world = await given({ nodes: { n1: { attached: ["v"] } }, attachments: ATTACHMENT, pods: POD });

  await world.advance(10 * 60_000);

  expect(world.requests()).toEqual([]);
});

test("82: what is attached and neither wanted nor used is detached, from its name alone", async () => {
  const world = await given({
    nodes: { n1: { attached: ["v"] } },
    volumes: { v: GONE },
    attachments: ATTACHMENT,
    attacher: "by-hand",
  });

  expect(world.requests()).toEqual(DETACH);
});

test("83: what is used stays until it is unmounted", async () => {
  const world = await given({ nodes: { n1: { attached: ["v"], inUse: ["v"] } }, attachments: ATTACHMENT });
  await world.advance(30 * 60_000);
  expect(world.requests()).toEqual([]);

  await world.setInUse("n1", []);
  await world.settle();

  expect(world.requests()).toEqual(DETACH);
});

for (const attached of [true, false]) {
  test(`84, 85: an attachment (attached ${attached}) that no node lists and nobody wants is deleted`, async () => {
    const world = await given({
      nodes: ["n1"],
      attachments: [{ volume: "v", node: "n1", attached, held: true }],
      attacher: "by-hand",
    });

    expect(world.requests()).toEqual(["GET node n1", "DELETE va v@n1"]);
  });
}

test("84: an attachment that no node lists but its node uses is not deleted", async () => {
  const world = await given({ nodes: { n1: { inUse: ["v"] } }, attachments: ATTACHMENT });

  await world.advance(30 * 60_000);

  expect(writes(world)).toEqual([]);
});

test("86: an attachment under way for a pod is waited for, not made again", async () => {
  const world = await given({
    nodes: ["n1"],
    attachments: [{ volume: "v", node: "n1", held: true }],
    pods: POD,
    attacher: "by-hand",
  });
  expect(world.requests()).toEqual([]);

  await world.hand.attach("v", "n1");
  await world.settle();

  expect(world.requests()).toEqual(["GET va v@n1", "PATCH node n1 [v]"]);
});

for (const late of [
  "pods",
  "nodes",
  "persistentvolumeclaims",
  "persistentvolumes",
  "volumeattachments",
  "csidrivers",
]) {
  test(`87, 88: a pod created while the first list of ${late} is on its way gets its volume, and none is taken`, async () => {
    const world = await given({
      nodes: { n1: { attached: ["w"] } },
      volumes: { v: {}, w: {} },
      attachments: [{ volume: "w", node: "n1", attached: true }],
      pods: { old: { on: "n1", uses: ["w"] } },
      started: false,
    });
    world.held.add(late);
    world.startController();
    await world.settle();
    expect(world.requests()).toEqual([]);

    await world.createPod("web", { on: "n1", uses: ["v"] });
    world.held.clear();
    await world.settle();

    expect(world.requests()).toEqual(["POST va v@n1", "PATCH node n1 [v w]"]);
  });
}

// Decision X-6: upstream leaves both for ever.
for (const [what, source] of [
  ["whose PersistentVolume is gone", { persistentVolumeName: "pv-gone" }],
  [
    "with the volume written into it",
    {
      inlineVolumeSpec: {
        accessModes: ["ReadWriteOnce"],
        csi: { driver: "csi.example.com", volumeHandle: "v" },
      },
    },
  ],
] as const) {
  const attachments = [
    { volume: "v", node: "n1", attached: true, source: structuredClone(source) as object },
  ];

  test(`89: an attachment ${what} is deleted at start-up if nobody wants it`, async () => {
    const world = await given({
      nodes: ["n1"],
      volumes: { v: GONE },
      attachments,
      attacher: "by-hand",
    });

    expect(world.requests()).toEqual(["GET node n1", "DELETE va v@n1"]);
  });

  test(`89: an attachment ${what} is kept while its node uses the volume`, async () => {
    const world = await given({
      nodes: { n1: { inUse: ["v"] } },
      volumes: { v: GONE },
      attachments,
      attacher: "by-hand",
    });
    await world.advance(10 * 60_000);
    expect(writes(world)).toEqual([]);

    await world.setInUse("n1", []);
    await world.settle();

    expect(writes(world)).toEqual(["DELETE va v@n1"]);
  });
}

test("89: an attachment that appears later and that nobody wants is deleted as well", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: GONE }, attacher: "by-hand" });

  const source = { persistentVolumeName: "pv-gone" };
  await world.hand.create("v", "n1", { attached: true, source });
  await world.advance(60_000);

  expect(writes(world)).toEqual(["DELETE va v@n1"]);
});

test("90: a migrated volume goes by its CSI name everywhere", async () => {
  const disk = {
    driver: "ebs.csi.aws.com",
    handle: "vol-1",
    source: { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1" } },
  };
  const world = await given({
    nodes: { n1: { attached: ["disk"] } },
    volumes: { disk },
    attachments: [{ volume: "disk", node: "n1", attached: true }],
    pods: { web: { on: "n1", uses: ["disk"] } },
  });
  await world.advance(5 * 60_000);
  expect(world.requests()).toEqual([]);

  await world.removePod("web");
  await world.settle();

  expect(world.requests()).toEqual(["PATCH node n1 []", "GET node n1", "DELETE va disk@n1"]);
});

test("91: a used volume whose pod's claim is not bound stays, and is wanted again once it is", async () => {
  const world = await given({
    nodes: { n1: { attached: ["v"], inUse: ["v"] } },
    volumes: { v: { claim: "pending" } },
    attachments: ATTACHMENT,
    pods: POD,
  });
  await world.advance(30 * 60_000);
  expect(world.requests()).toEqual([]);

  await world.bindClaim("v");
  await world.setInUse("n1", []);
  await world.advance(5_000);

  expect(world.requests()).toEqual([]);
  expect(world.volumesAttached("n1")).toEqual(["v"]);
});

// Unsure means no: a pod of this node whose claim is gone might be using just this volume.
test("91: while the claim of a pod on the node is missing, the volume is frozen, used or not", async () => {
  const world = await given({
    nodes: { n1: { attached: ["v"] } },
    attachments: ATTACHMENT,
    pods: POD,
    started: false,
  });
  await world.deleteClaim("v");
  world.startController();
  await world.advance(30 * 60_000);
  expect(world.requests()).toEqual([]);

  await world.removePod("web");
  await world.settle();

  expect(world.requests()).toEqual(DETACH);
});

// Decision X-7: upstream detaches it.
for (const attached of [["v"], []]) {
  test(`92: what an unmanaged node has attached (${attached.length} listed) is none of our business`, async () => {
    const world = await given({ nodes: { n1: { managed: false, attached } }, attachments: ATTACHMENT });

    await world.advance(10 * 60_000);

    expect(world.requests()).toEqual([]);
  });
}

test("93: a detach interrupted after the node was told is finished by the next process", async () => {
  const world = await given({ nodes: ["n1"], pods: POD });
  world.spoil("DELETE va v@n1", { kind: "hang" });
  await world.removePod("web");
  await world.settle();
  expect(world.volumesAttached("n1")).toEqual([]);

  await world.restartController();

  expect(world.attachmentOf("v", "n1")).toBeUndefined();
});

for (const wanted of [true, false]) {
  test(`94: an attach interrupted before the node was told is ${wanted ? "finished" : "undone"} by the next process`, async () => {
    const world = await given({ nodes: ["n1"], volumes: { v: {} } });
    world.spoil("PATCH node n1", { kind: "hang" });
    await world.createPod("web", { on: "n1", uses: ["v"] });
    await world.settle();
    if (!wanted) await world.removePod("web");
    world.forget();

    await world.restartController();

    expect(writes(world)).toEqual([wanted ? "PATCH node n1 [v]" : "DELETE va v@n1"]);
  });
}

for (const matcher of ["PATCH node n1", "GET node n1", "DELETE va v@n1", "POST va v@n2", "PATCH node n2"]) {
  for (const kind of ["hang", "answer-lost"] as const) {
    test(`94: killed during a move, at ${matcher} (${kind}), it leaves a world that the next one puts right`, async () => {
      const world = await given({ nodes: ["n1", "n2"], pods: POD, kubelets: true });
      world.spoil(matcher, { kind });
      await world.deletePod("web");
      await world.settle();
      await world.createPod("web", { on: "n2", uses: ["v"] });
      await world.settle();

      await world.restartController();
      await world.advance(5_000);

      expect(world.pod("web")?.status?.phase).toBe("Running");
      expect(world.violations).toEqual([]);
    });
  }
}

test("an attachment that only a cut-off cache believes in is asked for before a node is told", async () => {
  const world = await given({ nodes: ["n1"], pods: POD, attacher: "by-hand" });
  await world.hand.attach("v", "n1");
  await world.settle();
  // A detach that fails leaves the volume uncertain, with its VolumeAttachment in the cache.
  world.failNext("DELETE va v@n1", 500);
  await world.removePod("web");
  await world.settle();
  // From here on the controller hears nothing of VolumeAttachments, and somebody removes this one.
  world.held.add("volumeattachments");
  await world.hand.removeByHand("v", "n1");
  world.forget();

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.settle();

  expect(world.requests()).toEqual(["GET va v@n1", "POST va v@n1"]);
  expect(world.volumesAttached("n1")).toEqual([]);
});

test("found on two nodes that both want it, a volume of one node stays with one of them", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    volumes: { v: {} },
    attachments: [
      { volume: "v", node: "n1", attached: true },
      { volume: "v", node: "n2", attached: true },
    ],
    pods: { web: { on: "n1", uses: ["v"] }, db: { on: "n2", uses: ["v"] } },
  });
  await world.advance(5_000);

  expect(world.attachmentOf("v", "n1")).toBeDefined();
  expect(world.attachmentOf("v", "n2")).toBeUndefined();
  expect(world.volumesAttached("n1")).toEqual(["v"]);
  expect(world.volumesAttached("n2")).toEqual([]);

  await world.removePod("web");
  await world.advance(5_000);
  expect(world.volumesAttached("n2")).toEqual(["v"]);
});
