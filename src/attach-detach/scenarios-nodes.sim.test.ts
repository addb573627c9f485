import { expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { DRIVER } from "../sim/cluster-objects.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";

/** Scenarios 95 to 108 of the specification: nodes, and attachments that change under us. */

const POD = { web: { on: "n1", uses: ["v"] } };

const writes = (world: AttachDetachWorld) => world.requests().filter((line) => !line.startsWith("GET"));

const successes = (world: AttachDetachWorld) =>
  world.eventsOf("web", "SuccessfulAttachVolume").reduce((sum, { count }) => sum + count, 0);

test("95: a deleted node keeps what its pods want, until they are gone", async () => {
  const world = await given({ nodes: ["n1"], pods: POD });
  world.forget();

  await world.deleteNode("n1");
  await world.advance(10 * 60_000);
  expect(writes(world)).toEqual([]);
  await world.removePod("web");
  await world.settle();

  expect(writes(world)).toEqual(["DELETE va v@n1"]);
});

test("96: a node that is created again is told everything that is attached to it", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v", "w"] } } });
  await world.deleteNode("n1");
  await world.settle();
  world.forget();

  await world.createNode("n1");
  await world.settle();

  expect(world.requests()).toEqual(["PATCH node n1 [v w]"]);
});

test("97: a node that is new is told nothing", async () => {
  const world = await given({ nodes: ["n1"] });

  await world.createNode("n2");
  await world.settle();

  expect(world.requests()).toEqual([]);
});

test("96: what is attached to a node that was created again is not forgotten with a pod that was there before", async () => {
  const world = await given({
    nodes: ["n1"],
    volumes: { v: {}, w: { driver: "other.example.com" } },
    drivers: { "other.example.com": { attachRequired: false } },
    pods: { idle: { on: "n1", uses: ["w"] } },
  });
  await world.deleteNode("n1");
  await world.settle();
  await world.createNode("n1");
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.settle();
  expect(world.volumesAttached("n1")).toEqual(["v"]);
  await world.removePod("idle");
  await world.settle();
  world.forget();
  expect(world.controller.controller.report({ node: "n1" }).volumes).toHaveLength(1);

  await world.removePod("web");
  await world.advance(10 * 60_000);

  expect(world.requests()).toContain("DELETE va v@n1");
});

test("96: a pod that was on a node before that was created again keeps what it may be using there", async () => {
  const world = await given({
    nodes: ["n1"],
    volumes: { v: {} },
    drivers: { [DRIVER]: { attachRequired: false } },
    pods: { web: { on: "n1", uses: ["v"] } },
    attacher: "by-hand",
  });
  await world.deleteNode("n1");
  await world.settle();
  await world.createNode("n1");
  await world.deleteClaim("v");
  await world.setDriver(DRIVER, { attachRequired: true });
  await world.settle();
  world.forget();

  const spec = { attacher: DRIVER, nodeName: "n1", source: { persistentVolumeName: "pv-v" } };
  await world.client.create(volumeAttachments, {
    metadata: { name: world.labels.attachmentName("v", "n1") },
    spec,
  });
  await world.advance(10 * 60_000);

  expect(world.requests()).toEqual([]);
  expect(world.controller.controller.report({ node: "n1" })).toMatchObject({
    volumes: [{ waitingFor: { reason: "unresolved-pod" } }],
    unresolved: [{ pod: "default/web" }],
  });
});

test("98: one node that cannot be told does not keep another from being told, and is told later", async () => {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {}, w: {} } });
  const repair = world.spoil("PATCH node n1", { kind: "status", status: 500 });
  await world.createPod("one", { on: "n1", uses: ["v"] });
  await world.createPod("two", { on: "n2", uses: ["w"] });
  await world.advance(5_000);
  expect(world.volumesAttached("n1")).toEqual([]);
  expect(world.volumesAttached("n2")).toEqual(["w"]);

  repair();
  await world.advance(40_000);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
});

test("99: what a node no longer says it uses is unmounted", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v", "w"] } } });
  await world.setInUse("n1", ["v", "w"]);
  await world.settle();
  await world.removePod("web");
  await world.settle();
  world.forget();

  await world.setInUse("n1", ["w"]);
  await world.settle();

  expect(writes(world)).toEqual(["PATCH node n1 [w]", "DELETE va v@n1"]);
});

test("100: a volume just attached counts as used while its node has not been heard of since", async () => {
  const world = await given({ nodes: ["n1"], pods: POD, attacher: "by-hand" });
  await world.hand.hold("v", "n1");
  await world.deleteNode("n1");
  await world.settle();
  await world.hand.attach("v", "n1");
  await world.settle();

  await world.removePod("web");
  await world.advance(5 * 60_000);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeUndefined();
  await world.advance(2 * 60_000);

  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeDefined();
});

test("100: and no longer once it was", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} } });
  const repair = world.spoil("PATCH node n1", { kind: "status", status: 403 });
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.settle();
  await world.removePod("web");
  await world.settle();
  expect(writes(world)).not.toContain("DELETE va v@n1");
  repair();

  await world.heartbeat("n1");
  await world.advance(10_000);

  expect(world.attachmentOf("v", "n1")).toBeUndefined();
});

test("102: where a plugin knows the device, the node is told", async () => {
  const inline = [{ name: "disk", flexVolume: { driver: "example/flex" } }];
  const world = await given({
    nodes: ["n1"],
    pods: { web: { on: "n1", inline } },
    plugins: [deviceplugin("/dev/xvdf")],
  });

  expect(world.requests()).toEqual(["PATCH node n1 [example/flex/disk=/dev/xvdf]"]);
});

test("103: an attachment deleted by hand under a running pod is made again", async () => {
  const world = await given({ nodes: ["n1"], pods: POD, attacher: "by-hand" });
  await world.hand.attach("v", "n1");
  await world.settle();
  await world.setInUse("n1", ["v"]);
  await world.settle();
  world.forget();

  await world.hand.removeByHand("v", "n1");
  await world.settle();
  expect(world.attachmentOf("v", "n1")).toBeDefined();
  expect(world.volumesAttached("n1")).toEqual([]);
  await world.hand.attach("v", "n1");
  await world.settle();

  expect(world.volumesAttached("n1")).toEqual(["v"]);
  expect(world.requests().filter((line) => line.startsWith("POST"))).toEqual(["POST va v@n1"]);
  expect(successes(world)).toBe(2);
});

test("103: unless comparing was switched off", async () => {
  const world = await given({
    nodes: ["n1"],
    pods: POD,
    attacher: "by-hand",
    options: { disableReconcileSync: true },
  });
  await world.hand.attach("v", "n1");
  await world.settle();
  world.forget();

  await world.hand.removeByHand("v", "n1");
  await world.advance(10 * 60_000);

  expect(world.requests()).toEqual([]);
});

test("104: an attachment that is no longer attached is waited for again, with the node told meanwhile", async () => {
  const world = await given({ nodes: ["n1"], pods: POD, attacher: "by-hand" });
  await world.hand.attach("v", "n1");
  await world.settle();
  world.forget();

  await world.hand.setStatus("v", "n1", { attached: false });
  await world.settle();
  expect(world.volumesAttached("n1")).toEqual([]);
  await world.hand.attach("v", "n1");
  await world.settle();

  expect(world.requests()).toEqual(["PATCH node n1 []", "GET va v@n1", "PATCH node n1 [v]"]);
  expect(successes(world)).toBe(2);
});

// Decision X-9: upstream forgets it and leaves the attachment for ever.
test("105: an attachment nobody wants that says it is not attached is deleted, once it is not used", async () => {
  const world = await given({ nodes: ["n1"], pods: POD, attacher: "by-hand" });
  await world.hand.attach("v", "n1");
  await world.settle();
  await world.setInUse("n1", ["v"]);
  await world.settle();
  await world.removePod("web");
  await world.hand.setStatus("v", "n1", { attached: false });
  await world.advance(3 * 60_000);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeUndefined();

  await world.setInUse("n1", []);
  await world.settle();

  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeDefined();
});

test("106: an attach that failed is not taken for one that was lost", async () => {
  const world = await given({ nodes: ["n1"], pods: POD, attacher: "by-hand" });
  await world.hand.failAttach("v", "n1", "no");
  await world.settle();
  world.forget();

  await world.advance(5 * 60_000);

  expect(world.requests()).toEqual([]);
});

/** A FlexVolume driver that answers with this device. */
function deviceplugin(devicePath: string): AttachablePlugin {
  return {
    name: "example/flex",
    canSupport: (spec) => spec.kind === "inline" && spec.volume.flexVolume !== undefined,
    needsAttach: () => true,
    volumeName: () => "disk",
    metricName: () => "example/flex",
    attach: () => Promise.resolve(devicePath),
    detach: () => Promise.resolve(),
    verify: () => "attached",
  };
}
