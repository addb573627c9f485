import { expect, test } from "vitest";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";

/**
 * Nothing is tried sooner than its back-off says: neither by the sweep of every minute, nor by a kubelet's heartbeat of every
 * ten seconds, nor by the verification.
 */

const MINUTES_10 = 600_000;
/** 0.5 s to 122 s, doubled each time. */
const PAUSES_S = [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122, 122, 122];

async function tenMinutes(world: AttachDetachWorld): Promise<void> {
  for (let ms = 0; ms < MINUTES_10; ms += 10_000) {
    await world.advance(10_000);
    await world.heartbeat("n1");
  }
}

for (const [what, line, begin] of [
  [
    "an attach",
    "POST va v@n1",
    (world: AttachDetachWorld) => world.createPod("web", { on: "n1", uses: ["v"] }),
  ],
  ["a detach", "DELETE va v@n1", (world: AttachDetachWorld) => world.removePod("web")],
  [
    "a node's list",
    "PATCH node n1",
    (world: AttachDetachWorld) => world.createPod("web", { on: "n1", uses: ["v"] }),
  ],
  ["a look at the node before a detach", "GET node n1", (world: AttachDetachWorld) => world.removePod("web")],
] as const)
  // A read that is answered 500 is the client's to repeat.
  for (const status of line.startsWith("GET") ? [422] : [422, 500])
    test(`${what} that is answered ${status} for ten minutes is tried with growing pauses`, async () => {
      const world = await given({
        nodes: ["n1"],
        volumes: { v: {} },
        ...(what.includes("detach") && { pods: { web: { on: "n1", uses: ["v"] } } }),
      });
      world.forget();
      world.spoil(line, { kind: "status", status });
      await begin(world);
      await tenMinutes(world);

      const atMs = world
        .timedRequests()
        .filter((request) => request.line.startsWith(line))
        .map((request) => request.atMs);
      const pauses = atMs.slice(1).map((ms, index) => (ms - (atMs[index] ?? 0)) / 1_000);
      expect(pauses.length).toBeGreaterThanOrEqual(9);
      for (const [index, pause] of pauses.entries())
        expect([index, pause >= (PAUSES_S[index] ?? 122)]).toEqual([index, true]);
    });

test("a change goes out at once, though an earlier list of the node is in its back-off", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {}, w: {} } });
  const repair = world.spoil("PATCH node n1", { kind: "status", status: 500 });
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(100_000);

  repair();
  await world.createPod("db", { on: "n1", uses: ["w"] });
  await world.settle();

  expect(world.volumesAttached("n1")).toEqual(["v", "w"]);
});

test("what a volume waits for names the refusal of its node's list", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} } });
  world.spoil("PATCH node n1", { kind: "status", status: 422 });
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(70_000);

  const [volume] = world.controller.controller.report({ node: "n1" }).volumes;
  expect(volume?.waitingFor).toMatchObject({ reason: "node-status" });
  expect(volume?.waitingFor?.message).toMatch(
    /to list it as attached; the last write failed: .*made up: Invalid/,
  );
});

for (const what of ["attach", "detach"] as const)
  test(`while its lease is in doubt a leader tries its ${what} with growing pauses, and carries it out once it leads for certain`, async () => {
    const pods = { web: { on: "n1", uses: ["v"] } };
    const world = await given({ nodes: ["n1"], volumes: { v: {} }, ...(what === "detach" && { pods }) });
    await world.settle();
    expect(world.volumesAttached("n1")).toEqual(what === "detach" ? ["v"] : []);
    const line = what === "attach" ? "POST va v@n1" : "DELETE va v@n1";

    // As when somebody sets its clock ahead: the term goes on, and its next renewal is due in some seconds.
    world.controller.mayAct = false;
    if (what === "attach") await world.createPod("web", pods.web);
    else await world.removePod("web");
    await world.advance(5_000);
    expect(world.requests()).not.toContain(line);
    world.controller.mayAct = true;
    await world.advance(10_000);

    expect(world.requests()).toContain(line);
    expect(world.volumesAttached("n1")).toEqual(what === "attach" ? ["v"] : []);
  });
