import { expect, test } from "vitest";
import { given, type AttachDetachWorld, type WorldSketch } from "../sim/attach-detach-world.ts";

/** Scenarios 55 to 68 of the specification. */

const attached = (sketch: WorldSketch = {}) =>
  given({ nodes: ["n1", "n2"], pods: { web: { on: "n1", uses: ["v"] } }, ...sketch });

/** The same, with the test as the attacher. */
async function attachedByHand(): Promise<AttachDetachWorld> {
  const world = await attached({ attacher: "by-hand" });
  await world.hand.attach("v", "n1");
  await world.settle();
  world.forget();
  return world;
}

const stateOf = (world: AttachDetachWorld) =>
  world.controller.controller.report({ node: "n1" }).volumes.map(({ state }) => state);

const deletes = (world: AttachDetachWorld) => world.requests().filter((line) => line.startsWith("DELETE"));

test("55: a node that cannot be told keeps its volume, until it can", async () => {
  const world = await attached();
  world.forget();
  const repair = world.spoil("PATCH node n1", { kind: "status", status: 403 });

  await world.removePod("web");
  await world.advance(60_000);
  expect(deletes(world)).toEqual([]);
  expect(world.volumesAttached("n1")).toEqual(["v"]);
  // With the back-off of every operation: 0.5, 1, 2 ... 32 s make seven tries in a minute.
  expect(world.requests().length).toBeLessThanOrEqual(10);
  repair();
  await world.advance(65_000);

  expect(world.attachmentOf("v", "n1")).toBeUndefined();
  expect(world.volumesAttached("n1")).toEqual([]);
});

/** The kubelet takes the volume into use after the node was told, and the controller's cache does not know it yet. */
async function foundInUse(): Promise<AttachDetachWorld> {
  const world = await attached();
  world.forget();
  world.held.add("nodes");
  world.spoil("GET node n1", { kind: "delay", ms: 200 }, 1);
  await world.removePod("web");
  await world.advance(100);
  await world.setInUse("n1", ["v"]);
  await world.settle();
  return world;
}

test("56: what the server says about use counts, not what the cache says", async () => {
  const world = await foundInUse();

  expect(world.requests()).toEqual(["PATCH node n1 []", "GET node n1"]);
  expect(stateOf(world)).toEqual(["uncertain"]);
  expect(world.volumesAttached("n1")).toEqual([]);
  expect(world.eventsOf("web", "FailedAttachVolume")).toEqual([]);
});

test("56: what the answer to our own PATCH says about use counts as well", async () => {
  const world = await attached();
  world.forget();
  world.held.add("nodes");
  await world.setInUse("n1", ["v"]);

  await world.removePod("web");
  await world.advance(60_000);

  expect(deletes(world)).toEqual([]);
  expect(world.volumesAttached("n1")).toEqual([]);
});

test("57: a new pod on that node gets the volume back from the attachment that still is there", async () => {
  const world = await foundInUse();
  world.held.clear();
  await world.settle();
  world.forget();

  await world.createPod("again", { on: "n1", uses: ["v"] });
  await world.advance(2_000);

  expect(world.requests()).toEqual(["GET va v@n1", "PATCH node n1 [v]"]);
  expect(stateOf(world)).toEqual(["attached"]);
});

test("58: a node that is not there uses nothing", async () => {
  const world = await attached();
  world.forget();
  world.failNext("GET node n1", 404);

  await world.removePod("web");
  await world.settle();

  expect(world.requests()).toEqual(["PATCH node n1 []", "GET node n1 (404)", "DELETE va v@n1"]);
});

test("59: a node that cannot be asked may be using it", async () => {
  const world = await attached();
  world.forget();
  const repair = world.spoil("GET node n1", { kind: "status", status: 403 });

  await world.removePod("web");
  await world.advance(20_000);
  expect(deletes(world)).toEqual([]);
  expect(stateOf(world)).toEqual(["uncertain"]);
  const tries = world.requests().filter((line) => line.startsWith("GET node n1")).length;
  expect(tries).toBeGreaterThanOrEqual(4);
  expect(tries).toBeLessThanOrEqual(7);
  repair();
  await world.advance(20_000);

  expect(world.attachmentOf("v", "n1")).toBeUndefined();
});

test("60: an attachment that is gone already was detached", async () => {
  const world = await attachedByHand();
  world.held.add("volumeattachments");
  await world.hand.removeByHand("v", "n1");

  await world.removePod("web");
  await world.settle();
  expect(world.requests()).toEqual(["PATCH node n1 []", "GET node n1", "DELETE va v@n1"]);
  await world.createPod("other", { on: "n2", uses: ["v"] });
  await world.settle();

  expect(world.attachmentOf("v", "n2")).toBeDefined();
});

for (const status of [403, 500]) {
  test(`61: a DELETE answered with ${status} is tried again, and the volume is nobody else's meanwhile`, async () => {
    const world = await attached();
    world.forget();
    world.failNext("DELETE va v@n1", status, 3);

    await world.removePod("web");
    await world.createPod("other", { on: "n2", uses: ["v"] });
    await world.settle();
    expect(stateOf(world)).toEqual(["uncertain"]);
    expect(world.attachmentOf("v", "n2")).toBeUndefined();
    await world.advance(4_500);

    expect(deletes(world).length).toBe(4);
    expect(world.volumesAttached("n2")).toEqual(["v"]);
    const triedMs = world
      .timedRequests()
      .filter(({ line }) => line.startsWith("DELETE"))
      .map(({ atMs }) => atMs);
    expect((triedMs[1] ?? 0) - (triedMs[0] ?? 0)).toBeGreaterThanOrEqual(500);
    expect((triedMs[2] ?? 0) - (triedMs[1] ?? 0)).toBeGreaterThanOrEqual(1_000);
  });
}

test("62: a driver that cannot detach is waited for, and the volume is nobody else's meanwhile", async () => {
  const world = await attachedByHand();
  await world.removePod("web");
  await world.createPod("other", { on: "n2", uses: ["v"] });
  await world.settle();

  await world.hand.failDetach("v", "n1", "device busy");
  await world.settle();
  expect(stateOf(world)).toEqual(["uncertain"]);
  const [volume] = world.controller.controller.report({ node: "n1" }).volumes;
  expect(volume?.waitingFor?.message).toContain("device busy");
  await world.advance(30_000);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeDefined();
  expect(world.attachmentOf("v", "n2")).toBeUndefined();
  await world.hand.release("v", "n1");
  await world.advance(130_000);

  expect(world.attachmentOf("v", "n2")).toBeDefined();
});

test("63: a driver that does not answer is given up after two minutes, and believed when it does", async () => {
  const world = await attachedByHand();
  await world.removePod("web");
  await world.advance(121_000);
  expect(stateOf(world)).not.toEqual(["attached"]);
  await world.createPod("other", { on: "n2", uses: ["v"] });
  await world.settle();
  expect(world.attachmentOf("v", "n2")).toBeUndefined();

  await world.hand.release("v", "n1");
  await world.advance(5_000);

  expect(stateOf(world)).toEqual([]);
  expect(world.attachmentOf("v", "n2")).toBeDefined();
});

test("64: a detach that fails is forgotten once a pod of that node wants the volume again", async () => {
  const world = await attached();
  world.spoil("DELETE va v@n1", { kind: "status", status: 500 });
  await world.removePod("web");
  await world.advance(3_000);
  world.forget();

  await world.createPod("second", { on: "n1", uses: ["v"] });
  await world.advance(3_000);
  expect(world.requests()).toEqual(["GET va v@n1", "PATCH node n1 [v]"]);
  expect(stateOf(world)).toEqual(["attached"]);
  world.forget();
  await world.createPod("third", { on: "n2", uses: ["v"] });
  await world.advance(10_000);

  expect(world.requests()).toEqual([]);
});

test("65: a pod that comes back during the detach waits for its end", async () => {
  const world = await attachedByHand();
  await world.removePod("web");
  await world.settle();
  world.forget();

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(10_000);
  expect(world.requests()).toEqual([]);
  await world.hand.release("v", "n1");
  await world.advance(2_000);

  expect(world.requests()).toEqual(["POST va v@n1"]);
});

test("66: however often it is looked at, a detach is one DELETE", async () => {
  const world = await attachedByHand();

  await world.removePod("web");
  for (let beat = 0; beat < 5; beat++) {
    await world.heartbeat("n1");
    await world.settle();
  }
  await world.hand.release("v", "n1");
  await world.advance(10_000);

  expect(deletes(world)).toEqual(["DELETE va v@n1"]);
});

test("67: of several volumes that go at once, each leaves the list before its attachment is deleted", async () => {
  const labels = ["a", "b", "c", "d"];
  const world = await attached({ pods: { web: { on: "n1", uses: labels } } });
  world.forget();

  await world.removePod("web");
  await world.settle();

  let listed = labels;
  for (const line of world.requests()) {
    const patched = /^PATCH node n1 \[(.*)\]$/.exec(line)?.[1];
    if (patched !== undefined) listed = patched.split(" ").filter((label) => label !== "");
    const deleted = /^DELETE va (.*)@n1$/.exec(line)?.[1];
    if (deleted !== undefined) expect(listed, line).not.toContain(deleted);
  }
  expect(deletes(world).length).toBe(4);
  expect(world.volumesAttached("n1")).toEqual([]);
});

test("68: a volume of a plugin that nobody knows stays as it is", async () => {
  const unknown = "kubernetes.io/rbd/pool:image";
  const world = await given({ nodes: { n1: { attached: [unknown] } } });

  await world.advance(10 * 60_000);

  expect(world.requests()).toEqual([]);
  expect(world.volumesAttached("n1")).toEqual([unknown]);
});
