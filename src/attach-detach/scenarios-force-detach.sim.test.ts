import { expect, test } from "vitest";
import { configMaps } from "../kube/api/config-map.ts";
import { given, type AttachDetachWorld, type WorldSketch } from "../sim/attach-detach-world.ts";
import { OUT_OF_SERVICE } from "../sim/cluster-objects.ts";

/** Scenarios 69 to 80 of the specification. */

const COUNTER = "attach_detach_controller_attachdetach_controller_forced_detaches";
const MINUTE = 60_000;
const OFF = { key: OUT_OF_SERVICE, value: "nodeshutdown", effect: "NoExecute" };
/** Decision X-3 adds a GET of the node's health right before; where it stands in the order is not a promise. */
const FORCED = ["PATCH node n1 []", "DELETE va v@n1"];

/** `v` is attached to n1 and in use there, and its pod is gone. */
async function abandoned(sketch: WorldSketch = {}): Promise<AttachDetachWorld> {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } }, ...sketch });
  await world.setInUse("n1", ["v"]);
  await world.settle();
  await world.removePod("web");
  await world.settle();
  world.forget();
  return world;
}

const writes = (world: AttachDetachWorld) => world.requests().filter((line) => !line.startsWith("GET"));

const forced = async (world: AttachDetachWorld) => ({
  timeout: (await world.metric(COUNTER, { reason: "timeout" })) ?? 0,
  outOfService: (await world.metric(COUNTER, { reason: "out-of-service" })) ?? 0,
});

const sixMinutes = async (world: AttachDetachWorld) => {
  await world.advance(6 * MINUTE - 2_000);
  expect(writes(world)).toEqual([]);
  await world.advance(4_000);
};

test("69: a healthy node keeps what it uses, however long", async () => {
  const world = await abandoned();

  await world.advance(60 * MINUTE);

  expect(world.requests()).toEqual([]);
});

// Decision X-3: that the node is not healthy is read from the server before a volume is taken from it.
test("70: when it stops being healthy after six minutes, the volume is taken at once", async () => {
  const world = await abandoned();
  await world.advance(7 * MINUTE);

  await world.setReady("n1", "False");
  await world.settle();

  expect(writes(world)).toEqual(FORCED);
  expect(world.requests()).toContain("GET node n1");
  expect(await forced(world)).toEqual({ timeout: 1, outOfService: 0 });
  expect(world.attachmentOf("v", "n1")).toBeUndefined();
});

for (const ready of ["False", "Unknown", "missing"] as const) {
  test(`71, 72: a node whose Ready is ${ready} loses the volume after six minutes, not before`, async () => {
    const world = await abandoned();
    await world.setReady("n1", ready);
    await world.settle();

    await sixMinutes(world);

    expect(writes(world)).toEqual(FORCED);
    expect(await forced(world)).toEqual({ timeout: 1, outOfService: 0 });
  });
}

// Decision X-4: a deleted Node alone proves nothing about its machine.
test("73: a node that is deleted while it uses the volume loses it after six minutes, without being told", async () => {
  const world = await abandoned();
  await world.deleteNode("n1");
  await world.settle();

  await sixMinutes(world);

  expect(writes(world)).toEqual(["DELETE va v@n1"]);
});

test("74: a deleted node that did not use the volume loses it at once", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });
  await world.deleteNode("n1");
  await world.settle();
  world.forget();

  await world.removePod("web");
  await world.settle();

  expect(writes(world)).toEqual(["DELETE va v@n1"]);
  expect(await forced(world)).toEqual({ timeout: 0, outOfService: 0 });
});

for (const [taint, ready] of [
  [OFF, "True"],
  [OFF, "False"],
  [OFF, "Unknown"],
  [{ key: OUT_OF_SERVICE, effect: "NoSchedule" }, "False"],
  [{ key: OUT_OF_SERVICE, value: "whatever", effect: "NoExecute" }, "False"],
] as const) {
  test(`75, 76: out of service (${taint.effect}), Ready ${ready}: the volume is taken at once`, async () => {
    const world = await abandoned();
    await world.setReady("n1", ready);
    await world.setTaints("n1", [taint]);
    await world.settle();

    expect(writes(world)).toEqual(FORCED);
    expect(await forced(world)).toEqual({ timeout: 0, outOfService: 1 });
  });
}

/** Upstream's precedence: once the six minutes are over they are the reason, whatever else holds. */
for (const [minutes, ready, label, evidence] of [
  [5, "True", "out-of-service", /: the node carries the taint/],
  [5, "False", "out-of-service", /: the node carries the taint/],
  [7, "True", "timeout", /: the node carries the taint/],
  [7, "False", "timeout", /used it for 4\d\d s and the node is not ready; the node carries the taint/],
] as const)
  test(`out of service after ${minutes} minutes, Ready ${ready}: counted as ${label}, told with all that holds`, async () => {
    const world = await abandoned();
    await world.advance(minutes * MINUTE);
    world.held.add("nodes");
    await world.setReady("n1", ready);
    await world.setTaints("n1", [OFF]);
    world.held.delete("nodes");
    await world.advance(MINUTE - 1_000);

    // Both changes arrive at once: a list made from the first of them is refused, and made again.
    expect([...new Set(writes(world))]).toEqual(FORCED);
    const counts = { timeout: 0, outOfService: 0, [label === "timeout" ? "timeout" : "outOfService"]: 1 };
    expect(await forced(world)).toEqual(counts);
    const told = world.log.filter(({ message }) => message === "detach forced").map(({ fields }) => fields);
    expect(told).toMatchObject([{ reason: label }]);
    expect(`: ${String(told[0]?.["evidence"])}`).toMatch(evidence);
  });

test("77: out of service, but the pod is still there: nothing is taken", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });
  await world.setInUse("n1", ["v"]);
  await world.setReady("n1", "False");
  await world.settle();
  world.forget();

  await world.setTaints("n1", [OFF]);
  await world.advance(10 * MINUTE);

  expect(world.requests()).toEqual([]);
});

test("78: with forcing by time switched off only the taint takes the volume", async () => {
  const world = await abandoned({ options: { disableForceDetachOnTimeout: true } });
  await world.setReady("n1", "False");
  await world.advance(30 * MINUTE);
  expect(writes(world)).toEqual([]);
  expect(await forced(world)).toEqual({ timeout: 0, outOfService: 0 });

  await world.setTaints("n1", [OFF]);
  await world.settle();

  expect(writes(world)).toEqual(FORCED);
  expect(await forced(world)).toEqual({ timeout: 0, outOfService: 1 });
});

test("79: an ordinary detach is not counted", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });

  await world.removePod("web");
  await world.settle();

  expect(world.attachmentOf("v", "n1")).toBeUndefined();
  expect(await forced(world)).toEqual({ timeout: 0, outOfService: 0 });
});

// Decision X-5: upstream's timer starts over with the process; ours is kept in a ConfigMap beside the Lease.
test("80: a restart at minute five does not start the six minutes over", async () => {
  const world = await abandoned();
  await world.setReady("n1", "False");
  await world.advance(5 * MINUTE);
  expect(world.read(configMaps, { namespace: "kube-system", name: "mooring-detach-timers" })).toBeDefined();

  await world.restartController();
  world.forget();
  await world.advance(MINUTE - 3_000);
  expect(writes(world)).toEqual([]);
  await world.advance(5_000);

  expect(writes(world)).toEqual(FORCED);
});

test("80: without the right to keep timers they start over, and everything else works", async () => {
  const world = await abandoned();
  const forbid = () => {
    for (const verb of ["POST", "PATCH", "PUT"])
      world.spoil(`${verb} configmaps`, { kind: "status", status: 403 });
  };
  forbid();
  await world.setReady("n1", "False");
  await world.advance(5 * MINUTE);
  expect(world.otherRequests()).toContain("POST configmaps mooring-detach-timers (403)");

  await world.restartController();
  forbid();
  world.forget();
  await sixMinutes(world);

  expect(writes(world)).toEqual(FORCED);
});

/**
 * Decision X-3. The cache lags behind, and the change reaches the server `before` the node is told, so that the answer
 * shows it, or `after`, so that only the GET does.
 */
for (const when of ["before", "after"] as const) {
  test(`X-3: a taint taken off ${when} the node is told forces nothing`, async () => {
    const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });
    await world.setInUse("n1", ["v"]);
    await world.setTaints("n1", [OFF]);
    await world.settle();
    world.held.add("nodes");
    world.spoil("GET node n1", { kind: "delay", ms: 2_000 }, 1);

    if (when === "before") await world.setTaints("n1", []);
    await world.removePod("web");
    await world.advance(1_000);
    if (when === "after") await world.setTaints("n1", []);
    await world.advance(30_000);

    expect(world.attachmentOf("v", "n1")).toBeDefined();
    expect(await forced(world)).toEqual({ timeout: 0, outOfService: 0 });
  });

  test(`X-3: a node that became healthy ${when} it is told keeps what it uses`, async () => {
    const world = await abandoned();
    await world.setReady("n1", "False");
    await world.advance(6 * MINUTE - 20_000);
    world.held.add("nodes");
    world.spoil("GET node n1", { kind: "delay", ms: 2_000 }, 1);

    if (when === "before") await world.setReady("n1", "True");
    await world.advance(20_500);
    if (when === "after") await world.setReady("n1", "True");
    await world.advance(MINUTE);

    expect(world.attachmentOf("v", "n1")).toBeDefined();
    expect(await forced(world)).toEqual({ timeout: 0, outOfService: 0 });
  });
}

// Decision X-2: upstream drops the live check after six minutes of trying, on healthy nodes too.
test("X-2: a detach that keeps failing on a healthy node asks the node every time, and is no force", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } } });
  const repair = world.spoil("DELETE va v@n1", { kind: "status", status: 500 });
  await world.removePod("web");
  await world.advance(10 * MINUTE);
  world.forget();

  await world.advance(10 * MINUTE);
  const kinds = world.requests().map((line) => line.split(" ")[0]);
  expect(kinds.length).toBeGreaterThan(4);
  expect(kinds).toEqual(kinds.map((_, index) => (index % 2 === 0 ? "GET" : "DELETE")));
  await world.setInUse("n1", ["v"]);
  repair();
  await world.advance(10 * MINUTE);

  expect(world.attachmentOf("v", "n1")).toBeDefined();
  expect(await forced(world)).toEqual({ timeout: 0, outOfService: 0 });
});

test("a dead node: its pod moves, and the volume follows after six minutes", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    pods: { web: { on: "n1", uses: ["v"] } },
    kubelets: true,
  });
  await world.settle();
  expect(world.pod("web")?.status?.phase).toBe("Running");

  world.stopKubelet("n1");
  await world.setReady("n1", "Unknown");
  await world.removePod("web");
  await world.createPod("web", { on: "n2", uses: ["v"] });
  await world.advance(6 * MINUTE + 5_000);

  expect(world.pod("web")?.status?.phase).toBe("Running");
  expect(world.violations).toEqual([]);
  expect(await forced(world)).toEqual({ timeout: 1, outOfService: 0 });
});
