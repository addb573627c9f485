import { expect, test } from "vitest";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";

/** Writes that the server carries out after we gave them up, behind whatever we did meanwhile. */

/** Until a request that begins so has left the controller. */
async function sent(world: AttachDetachWorld, line: string): Promise<void> {
  while (!world.requests().some((request) => request.startsWith(line))) await world.advance(1);
}

const published = (world: AttachDetachWorld) => world.storages.publishedOn(world.labels.uniqueName("v"));

test("a create that arrives late finds no second node with the volume", async () => {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} }, kubelets: true });
  world.spoil("POST va v@n1", { kind: "late", ms: 20_000 }, 1);
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(100);

  await world.removePod("web");
  await world.createPod("moved", { on: "n2", uses: ["v"] });
  await world.advance(19_000);
  expect(world.requests()).not.toContain("POST va v@n2");
  await world.advance(120_000);

  expect(world.violations).toEqual([]);
  expect(published(world)).toEqual(["n2"]);
  expect(world.attachmentOf("v", "n1")).toBeUndefined();
  expect(world.pod("moved")?.status?.phase).toBe("Running");
});

test("one that never arrives costs the wait, and then the volume moves on", async () => {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} } });
  world.spoil("POST va v@n1", { kind: "hang" }, 1);
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(31_000);

  await world.removePod("web");
  await world.createPod("moved", { on: "n2", uses: ["v"] });
  await world.advance(65_000);
  expect(published(world)).toEqual([]);
  await world.advance(10_000);

  expect(published(world)).toEqual(["n2"]);
});

test("a late create behind one that worked does not bring the attachment back", async () => {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} }, kubelets: true });
  world.spoil("POST va v@n1", { kind: "late", ms: 15_000 }, 1);
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(5_000);
  expect(published(world)).toEqual(["n1"]);

  await world.deletePod("web");
  await world.createPod("moved", { on: "n2", uses: ["v"] });
  await world.advance(120_000);

  expect(world.violations).toEqual([]);
  expect(published(world)).toEqual(["n2"]);
});

test("a delete that arrives late does not hit the attachment of the pod that came back", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } }, kubelets: true });
  await world.settle();
  world.spoil("DELETE va v@n1", { kind: "late", ms: 30_000 }, 1);

  await world.deletePod("web");
  await world.advance(10_000);
  await world.createPod("back", { on: "n1", uses: ["v"] });
  await world.advance(60_000);

  expect(world.violations).toEqual([]);
  expect(published(world)).toEqual(["n1"]);
  expect(world.pod("back")?.status?.phase).toBe("Running");
});

test("a list that arrives late, behind another, is refused, and delays nothing", async () => {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} }, kubelets: true });
  world.spoil("PATCH node n1 [v]", { kind: "late", ms: 30_000 }, 1);
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(10_000);
  expect(world.pod("web")?.status?.phase).toBe("Running");

  await world.deletePod("web");
  await world.createPod("moved", { on: "n2", uses: ["v"] });
  await world.advance(15_000);
  expect(published(world)).toEqual(["n2"]);
  await world.advance(60_000);

  expect(world.violations).toEqual([]);
  expect(world.volumesAttached("n1")).toEqual([]);
});

test("a node that a kubelet writes at the same time is read, and gets its list at once", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} } });
  world.spoil("PATCH node n1 [v]", { kind: "delay", ms: 50 }, 1);
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await sent(world, "PATCH node n1 [v]");

  await world.heartbeat("n1");
  await world.advance(100);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
  expect(world.requests().filter((line) => line.includes("node"))).toEqual([
    "PATCH node n1 [v]",
    "GET node n1",
    "PATCH node n1 [v]",
  ]);
});

test("a late list that leaves out what was attached meanwhile is written again", async () => {
  const world = await given({ nodes: ["n1"], volumes: { u: {}, v: {} }, kubelets: true });
  await world.createPod("first", { on: "n1", uses: ["u"] });
  await world.advance(5_000);
  world.spoil("PATCH node n1 []", { kind: "late", ms: 20_000 }, 1);
  await world.deletePod("first");
  await world.advance(2_000);

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(60_000);

  expect(world.violations).toEqual([]);
  expect(world.volumesAttached("n1")).toEqual(["v"]);
  expect(world.pod("web")?.status?.phase).toBe("Running");
});
