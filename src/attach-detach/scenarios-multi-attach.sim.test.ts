import { expect, test } from "vitest";
import { given, type AttachDetachWorld, type WorldSketch } from "../sim/attach-detach-world.ts";

/** Scenarios 32 to 43 of the specification. */

const SHARED = { modes: ["ReadWriteMany"] };

/** `v` attached to n1 and in use there, while `web` on n2 wants it too. */
async function contested(sketch: WorldSketch, { keep = true } = {}): Promise<AttachDetachWorld> {
  const world = await given({ nodes: ["n1", "n2"], ...sketch });
  await world.setInUse("n1", ["v"]);
  await world.settle();
  if (!keep) for (const pod of Object.keys(sketch.pods ?? {})) await world.removePod(pod);
  await world.createPod("web", { on: "n2", uses: ["v"] });
  await world.settle();
  return world;
}

const warnings = (world: AttachDetachWorld, pod: string) =>
  world.eventsOf(pod, "FailedAttachVolume").map(({ type, message, count }) => `${type} ${count} ${message}`);

test("32, 34: a volume for one node waits for the other one, and the pod is told once by whom it is used", async () => {
  const world = await contested({ pods: { pod2: { on: "n1", uses: ["v"] } } });

  await world.advance(3_600_000);

  expect(world.attachmentOf("v", "n2")).toBeUndefined();
  expect(warnings(world, "web")).toEqual([
    'Warning 1 Waiting for detach for volume "pv-v" Volume is already used by pod(s) pod2',
  ]);
});

test("33: nobody on the other node wants it any more: the pod waits for the detach", async () => {
  const world = await contested({ pods: { gone: { on: "n1", uses: ["v"] } } }, { keep: false });

  expect(warnings(world, "web")).toEqual([
    'Warning 1 Waiting for detach for volume "pv-v" Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node',
  ]);
});

test("35: pods of other namespaces are counted, not named", async () => {
  const world = await contested({
    volumes: { v: {}, w: { handle: "v", namespace: "team" } },
    pods: { "team/secret": { on: "n1", uses: ["w"] } },
  });

  expect(warnings(world, "web")).toEqual([
    'Warning 1 Waiting for detach for volume "pv-v" Volume is already used by 1 pod(s) in different namespaces',
  ]);
});

test("36: both kinds of pods are told apart", async () => {
  const world = await contested({
    volumes: { v: {}, w: { handle: "v", namespace: "team" } },
    pods: { pod3: { on: "n1", uses: ["v"] }, "team/secret": { on: "n1", uses: ["w"] } },
  });

  expect(warnings(world, "web")).toEqual([
    'Warning 1 Waiting for detach for volume "pv-v" Volume is already used by pod(s) pod3 and 1 pod(s) in different namespaces',
  ]);
});

test("37: when the one node has let go the other gets it, without a word about pods", async () => {
  const world = await contested({ pods: { old: { on: "n1", uses: ["v"] } } }, { keep: false });
  world.forget();

  await world.setInUse("n1", []);
  await world.settle();

  expect(world.requests()).toEqual([
    "PATCH node n1 []",
    "GET node n1",
    "DELETE va v@n1",
    "POST va v@n2",
    "PATCH node n2 [v]",
  ]);
  expect(world.violations).toEqual([]);
});

test("38: a shared volume is attached to both nodes at the same time", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    volumes: { v: SHARED },
    pods: { one: { on: "n1", uses: ["v"] }, two: { on: "n2", uses: ["v"] } },
    attacher: "by-hand",
  });

  expect(world.requests().sort()).toEqual(["POST va v@n1", "POST va v@n2"]);
});

test("39: a shared volume leaves one node without touching the other", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    volumes: { v: SHARED },
    pods: { one: { on: "n1", uses: ["v"] }, two: { on: "n2", uses: ["v"] } },
  });
  world.forget();

  await world.removePod("one");
  await world.settle();

  expect(world.requests()).toEqual(["PATCH node n1 []", "GET node n1", "DELETE va v@n1"]);
  expect(world.volumesAttached("n2")).toEqual(["v"]);
});

for (const [modes, nodes] of [
  [
    ["ReadWriteOnce", "ReadOnlyMany"],
    ["n1", "n2"],
  ],
  [["ReadOnlyMany"], ["n1", "n2"]],
  [["ReadWriteOnce"], ["n1"]],
  [["ReadWriteOncePod"], ["n1"]],
] as const) {
  test(`40: a volume that is ${modes.join(", ")} goes to ${nodes.length} of two nodes`, async () => {
    const world = await contested({ volumes: { v: { modes } }, pods: { one: { on: "n1", uses: ["v"] } } });

    const having = ["n1", "n2"].filter((node) => world.attachmentOf("v", node) !== undefined);
    expect(having).toEqual(nodes);
  });
}

test("41: a shared volume that fails on one node is not late on another", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    volumes: { v: SHARED },
    pods: { one: { on: "n1", uses: ["v"] } },
    attacher: "by-hand",
  });
  await world.hand.failAttach("v", "n1", "no");
  await world.settle();
  world.forget();

  await world.createPod("two", { on: "n2", uses: ["v"] });
  await world.settle();

  expect(world.requests()).toEqual(["POST va v@n2"]);
});

test("42: while a volume for one node is being attached to it, no other gets it", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    pods: { one: { on: "n1", uses: ["v"] } },
    attacher: "by-hand",
  });

  await world.createPod("two", { on: "n2", uses: ["v"] });
  await world.advance(90_000);

  expect(world.requests()).toEqual(["POST va v@n1"]);
});

// Decision X-1: upstream lets an uncertain holder be overtaken; here it blocks until its attachment is gone.
test("43: a node that may have the volume keeps others from getting it until its attachment is gone", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    pods: { one: { on: "n1", uses: ["v"] } },
    attacher: "by-hand",
  });
  await world.hand.failAttach("v", "n1", "no answer from the array");
  await world.settle();
  await world.createPod("two", { on: "n2", uses: ["v"] });
  await world.advance(10_000);
  expect(world.attachmentOf("v", "n2")).toBeUndefined();

  await world.removePod("one");
  await world.advance(10_000);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeDefined();
  expect(world.attachmentOf("v", "n2")).toBeUndefined();
  await world.hand.release("v", "n1");
  await world.settle();

  expect(world.attachmentOf("v", "n2")).toBeDefined();
});

test("43: a detach that failed leaves a holder that blocks, also after a restart", async () => {
  const world = await given({ nodes: ["n1", "n2"], pods: { one: { on: "n1", uses: ["v"] } } });
  const repair = world.spoil("DELETE va v@n1", { kind: "status", status: 403 });
  await world.removePod("one");
  await world.createPod("two", { on: "n2", uses: ["v"] });
  await world.advance(30_000);
  expect(world.attachmentOf("v", "n2")).toBeUndefined();
  repair();

  await world.restartController();
  await world.advance(1_000);

  expect(world.attachmentOf("v", "n1")).toBeUndefined();
  expect(world.volumesAttached("n2")).toEqual(["v"]);
  expect(world.violations).toEqual([]);
});
