import { expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { noMetrics } from "../../base/metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { given, NODE, type NodeWorld } from "../../sim/node-world.ts";
import { createPodStarter } from "./pod-starter.ts";

/** The starter beside the real volume manager, on a simulated machine with a simulated driver. */
function startPods(world: NodeWorld): () => void {
  const stop = new AbortController();
  const events = { record: () => undefined };
  const { client, clock } = world;
  const deps = {
    client,
    clock,
    random: createSeededRandom(5),
    log: silentLogger,
    metrics: noMetrics,
    events,
  };
  void createPodStarter(deps, { nodeName: NODE, volumes: world.manager }).run(stop.signal);
  return () => stop.abort(new Error("killed"));
}

const readyOf = (world: NodeWorld, pod: string) =>
  world.pod(pod)?.status?.conditions?.find(({ type }) => type === "Ready")?.status;

test("a pod is ready once its volume is published, and gone once nothing of it is mounted", async () => {
  const world = await given({ volumes: { v: {} } });
  startPods(world);

  await world.startPod("web", { uses: ["v"] });
  await world.runFor(2_000);
  expect(readyOf(world, "web")).toBe("True");
  expect(world.inUse()).toEqual(["v"]);
  expect((await world.mountPoints()).length).toBeGreaterThan(0);

  await world.deletePod("web");
  await world.runFor(5_000);
  expect(world.pod("web")).toBeUndefined();
  expect(await world.mountPoints()).toEqual([]);
  expect(world.inUse()).toEqual([]);
});

test("a pod whose volume is not attached waits, and is ready once it is", async () => {
  const world = await given({ volumes: { v: {} }, driver: { attachRequired: true }, attached: false });
  startPods(world);

  await world.startPod("web", { uses: ["v"] });
  await world.runFor(300_000);
  expect(readyOf(world, "web")).toBe("False");
  expect(world.pod("web")?.status?.phase).toBe("Pending");

  await world.attach("v");
  await world.runFor(5_000);
  expect(readyOf(world, "web")).toBe("True");
});

test("agent and starter die together: the pod deleted meanwhile goes only after its volume", async () => {
  const world = await given({ volumes: { v: {} } });
  const kill = startPods(world);
  await world.startPod("web", { uses: ["v"] });
  await world.runFor(2_000);
  kill();
  world.abandon();
  await world.deletePod("web");
  await world.runFor(1_000);
  expect((await world.mountPoints()).length).toBeGreaterThan(0);

  world.start();
  startPods(world);
  const isGone = () => world.pod("web") === undefined;
  expect(await world.scheduler.runUntilTrue(isGone, { withinMs: 60_000 })).toBe(true);

  expect(await world.mountPoints()).toEqual([]);
});
