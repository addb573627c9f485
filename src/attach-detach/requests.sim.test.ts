import { expect, test } from "vitest";
import { given } from "../sim/attach-detach-world.ts";

/** What the API server is asked for, to the request: cost is a promise too. */

test("one volume alone on its node costs five requests from wanted to gone", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} }, kubelets: true });

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(5_000);
  await world.deletePod("web");
  await world.advance(5_000);

  expect(world.requests()).toEqual([
    "POST va v@n1",
    "PATCH node n1 [v]",
    "PATCH node n1 []",
    "GET node n1",
    "DELETE va v@n1",
  ]);
});

test("a driver that is faster than the server's answer costs no request more", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} }, kubelets: true });
  world.spoil("DELETE va v@n1", { kind: "answer-late", ms: 500 });

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(5_000);
  await world.deletePod("web");
  await world.advance(5_000);

  expect(world.requests().slice(-2)).toEqual(["GET node n1", "DELETE va v@n1"]);
});

test("a burst on one node shares the writes of its status, and the reads before its detaches", async () => {
  const volumes = Array.from({ length: 20 }, (_, index) => `v${index}`);
  const world = await given({
    nodes: ["n1"],
    volumes: Object.fromEntries(volumes.map((label) => [label, {}])),
  });

  // As on a network: what comes while a write is under way goes into the next one.
  world.spoil("PATCH node n1", { kind: "delay", ms: 20 });

  for (const label of volumes) await world.createPod(`pod-${label}`, { on: "n1", uses: [label] });
  await world.advance(5_000);
  expect(world.volumesAttached("n1")).toHaveLength(20);
  const attaching = statusWrites(world.requests());
  world.forget();
  for (const label of volumes) await world.removePod(`pod-${label}`);
  await world.advance(5_000);

  expect(world.volumesAttached("n1")).toEqual([]);
  expect(attaching).toBeLessThanOrEqual(3);
  expect(statusWrites(world.requests())).toBeLessThanOrEqual(3);
  expect(world.requests().filter((line) => line === "GET node n1").length).toBeLessThanOrEqual(3);
});

test("a cluster at rest asks for nothing", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    pods: { web: { on: "n1", uses: ["v"] }, db: { on: "n2", uses: ["w"] } },
    kubelets: true,
  });
  await world.advance(5_000);
  world.forget();

  await world.advance(60 * 60_000);

  expect(world.requests()).toEqual([]);
});

function statusWrites(lines: readonly string[]): number {
  return lines.filter((line) => line.startsWith("PATCH node")).length;
}
