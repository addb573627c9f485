import { expect, test } from "vitest";
import { given } from "../sim/attach-detach-world.ts";

/** Scenarios 17 to 31 of the specification: from a pod's volume to a real one, and drivers. */

const TEMPLATE = {
  volumeClaimTemplate: {
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  },
};

test("17: when a claim is bound, every scheduled pod that uses it and is not over gets its attachment", async () => {
  const world = await given({
    nodes: ["n1", "n2", "n3"],
    volumes: { v: { claim: "pending", modes: ["ReadWriteMany"] } },
    pods: {
      one: { on: "n1", uses: ["v"] },
      two: { on: "n2", uses: ["v"] },
      over: { on: "n3", uses: ["v"], status: { phase: "Succeeded" } },
      unscheduled: { uses: ["v"] },
    },
  });
  expect(world.requests()).toEqual([]);

  await world.bindClaim("v");
  await world.settle();

  const posts = world.requests().filter((line) => line.startsWith("POST"));
  expect(posts.sort()).toEqual(["POST va v@n1", "POST va v@n2"]);
});

test("18: a bound claim that names no volume gives no attachment", async () => {
  const world = await given({
    nodes: ["n1"],
    volumes: { v: { claim: "unnamed" } },
    pods: { web: { on: "n1", uses: ["v"] } },
  });

  expect(world.requests()).toEqual([]);
});

for (const volume of ["missing", "unclaimed"] as const) {
  test(`19: with its PersistentVolume ${volume} there is no attachment, and none of upstream's events`, async () => {
    const world = await given({
      nodes: ["n1"],
      volumes: { v: { volume } },
      pods: { web: { on: "n1", uses: ["v"] } },
    });

    await world.advance(5 * 60_000);

    expect(world.requests()).toEqual([]);
    expect(world.eventsOf("web", "FailedAttachVolume", "SuccessfulAttachVolume")).toEqual([]);
  });
}

test("19: a PersistentVolume that comes later is noticed without any word about pod or claim", async () => {
  const world = await given({
    nodes: ["n1"],
    volumes: { v: { volume: "missing" } },
    pods: { web: { on: "n1", uses: ["v"] } },
  });
  expect(world.requests()).toEqual([]);

  await world.createPersistentVolume("v");
  await world.settle();

  expect(world.requests()).toEqual(["POST va v@n1", "PATCH node n1 [v]"]);
});

test("20: three pods with unbound claims wait, one with an inline disk does not", async () => {
  const disk = { name: "disk", awsElasticBlockStore: { volumeID: "vol-9" } };
  const inlineDisk = {
    driver: "ebs.csi.aws.com",
    handle: "vol-9",
    claim: "missing",
    volume: "missing",
  } as const;
  const pending = { claim: "pending" } as const;
  const world = await given({
    nodes: ["n1"],
    volumes: { a: pending, b: pending, c: pending, inlineDisk },
    pods: {
      one: { on: "n1", uses: ["a"] },
      two: { on: "n1", uses: ["b"] },
      three: { on: "n1", uses: ["c"] },
      four: { on: "n1", inline: [disk] },
    },
  });
  expect(world.volumesAttached("n1")).toEqual(["inlineDisk"]);

  for (const label of ["a", "b", "c"]) await world.bindClaim(label);
  await world.settle();

  expect(world.volumesAttached("n1")).toEqual(["a", "b", "c", "inlineDisk"]);
});

for (const owned of [true, false]) {
  test(`21: the claim of an ephemeral volume ${owned ? "leads to its volume" : "of somebody else does not count"}`, async () => {
    const world = await given({
      nodes: ["n1"],
      volumes: { v: { claim: "missing", volume: "missing" } },
      pods: { web: { on: "n1", inline: [{ name: "data", ephemeral: TEMPLATE }] } },
    });
    const owner = world.pod("web");

    const controlled = owned && owner !== undefined ? { owner } : {};
    await world.createClaim("default/web-data", { volumeName: "pv-v", bound: true, ...controlled });
    await world.createPersistentVolume("v", "default/web-data");
    await world.settle();

    expect(world.requests()).toEqual(owned ? ["POST va v@n1", "PATCH node n1 [v]"] : []);
  });
}

test("22, 25: a pod whose deletion was missed is noticed by its absence, and all its volumes go", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v", "w"] } } });

  world.cutOff();
  await world.removePod("web");
  await world.advance(5_000);
  await world.reconnect();
  await world.advance(60_000);

  expect(world.volumesAttached("n1")).toEqual([]);
  expect(world.attachmentOf("v", "n1")).toBeUndefined();
  expect(world.attachmentOf("w", "n1")).toBeUndefined();
});

test("22: all volumes of a pod go with it even if claims and PersistentVolumes are gone", async () => {
  const world = await given({
    nodes: ["n1"],
    pods: { web: { on: "n1", uses: ["v", "w"] } },
    attacher: "by-hand",
  });
  for (const label of ["v", "w"]) await world.hand.attach(label, "n1");
  await world.settle();
  for (const label of ["v", "w"]) await world.deleteClaim(label);
  for (const label of ["v", "w"]) await world.deletePersistentVolume(label);
  await world.settle();

  await world.removePod("web");
  await world.settle();

  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeDefined();
  expect(world.attachmentOf("w", "n1")?.metadata.deletionTimestamp).toBeDefined();
});

test("23: a pod whose creation was missed is found", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} } });

  world.cutOff();
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(5_000);
  await world.reconnect();
  await world.advance(60_000);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
});

test("24: a pod that came back under its name on another node: the old place is left, the new one served", async () => {
  const world = await given({ nodes: ["n1", "n2"], pods: { web: { on: "n1", uses: ["v"] } } });

  world.cutOff();
  await world.removePod("web");
  await world.createPod("web", { on: "n2", uses: ["v"] });
  await world.advance(5_000);
  await world.reconnect();
  await world.advance(60_000);

  expect(world.volumesAttached("n1")).toEqual([]);
  expect(world.volumesAttached("n2")).toEqual(["v"]);
  expect(world.violations).toEqual([]);
});

test("26: access modes changed later do not reach a pod that already waits", async () => {
  const world = await given({ nodes: ["n1", "n2"], pods: { web: { on: "n1", uses: ["v"] } } });
  await world.setInUse("n1", ["v"]);
  await world.createPod("other", { on: "n2", uses: ["v"] });
  await world.settle();
  world.forget();

  await world.patchPersistentVolume("v", { spec: { accessModes: ["ReadWriteMany"] } });
  await world.advance(10 * 60_000);
  expect(world.requests()).toEqual([]);
  await world.removePod("other");
  await world.settle();
  await world.createPod("another", { on: "n2", uses: ["v"] });
  await world.settle();

  expect(world.requests()).toEqual(["POST va v@n2", "PATCH node n2 [v]"]);
});

const NEEDS_NO_ATTACH = { "csi.example.com": { attachRequired: false } };

test("27: a driver that needs no attaching gets none", async () => {
  const world = await given({
    nodes: ["n1"],
    drivers: NEEDS_NO_ATTACH,
    pods: { web: { on: "n1", uses: ["v"] } },
  });

  expect(world.requests()).toEqual([]);
  expect(world.eventsOf("web")).toEqual([]);
});

for (const [name, drivers] of [
  ["without an object", {}],
  ["that does not say", { "csi.example.com": {} }],
] as const) {
  test(`28: a driver ${name} is taken to need attaching`, async () => {
    const world = await given({ nodes: ["n1"], drivers, pods: { web: { on: "n1", uses: ["v"] } } });

    expect(world.volumesAttached("n1")).toEqual(["v"]);
  });
}

test("29: an ephemeral CSI volume is never attached", async () => {
  const inline = [{ name: "e", csi: { driver: "csi.example.com" } }];
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", inline } } });

  expect(world.requests()).toEqual([]);
});

test("30: a driver that stops needing attaching during an attach: what was attached is taken off again", async () => {
  const world = await given({
    nodes: ["n1"],
    pods: { web: { on: "n1", uses: ["v"] } },
    attacher: "by-hand",
  });
  await world.hand.hold("v", "n1");

  await world.setDriver("csi.example.com", { attachRequired: false });
  await world.settle();
  await world.hand.attach("v", "n1");
  await world.advance(60_000);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeDefined();
  await world.hand.release("v", "n1");
  await world.settle();

  expect(world.attachmentOf("v", "n1")).toBeUndefined();
  expect(world.volumesAttached("n1")).toEqual([]);
});

test("31: while its driver needs no attaching, a volume in use is not doubted", async () => {
  const world = await given({
    nodes: ["n1"],
    pods: { web: { on: "n1", uses: ["v"] } },
    attacher: "by-hand",
  });
  await world.hand.attach("v", "n1");
  await world.settle();
  await world.setInUse("n1", ["v"]);
  await world.setDriver("csi.example.com", { attachRequired: false });
  await world.settle();
  world.forget();

  await world.hand.setStatus("v", "n1", { attached: false });
  await world.advance(3 * 60_000);

  expect(world.requests()).toEqual([]);
  expect(world.volumesAttached("n1")).toEqual(["v"]);
});
