import { setMaxListeners } from "node:events";
import { expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { OriginalController } from "../sim/original-controller.ts";

/** Upstream's controller runs in place of ours, as the guide says: one has ended before the other is started. */

const MINUTE = 60_000;
const FORCE_AFTER_MS = 6 * MINUTE;

/** Ours ends, the original runs while `meanwhile` happens and for as long as it takes, and ours is started again. */
async function underOriginal(world: AttachDetachWorld, meanwhile: () => Promise<void>): Promise<void> {
  const stopOurs = world.controller.stop();
  await world.settle();
  await stopOurs;
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const deps = { client: world.client, clock: world.clock, random: createSeededRandom("original") };
  const ended = new OriginalController(deps, { forceAfterMs: FORCE_AFTER_MS }).run(stop.signal);
  await world.advance(10_000);
  await meanwhile();
  await world.advance(10_000);
  stop.abort(new Error("SIGTERM"));
  await world.settle();
  await ended;
  world.forget();
  world.startController();
  await world.settle();
}

const writes = (world: AttachDetachWorld) => world.requests().filter((line) => !line.startsWith("GET"));

test("what a pod uses stays as it is, through the switch and back", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } }, kubelets: true });
  const { uid } = world.attachmentOf("v", "n1")?.metadata ?? {};

  await underOriginal(world, () => world.advance(10 * MINUTE));
  await world.advance(10 * MINUTE);

  expect(world.attachmentOf("v", "n1")?.metadata.uid).toBe(uid);
  expect(writes(world)).toEqual([]);
  expect(world.violations).toEqual([]);
});

test("what the original attached is ours to detach, and what it detached ours to attach", async () => {
  const world = await given({
    nodes: ["n1", "n2"],
    pods: { old: { on: "n1", uses: ["v"] } },
    kubelets: true,
  });

  await underOriginal(world, async () => {
    await world.deletePod("old");
    await world.createPod("new", { on: "n2", uses: ["v"] });
    await world.advance(MINUTE);
  });
  expect(world.volumesAttached("n2")).toEqual(["v"]);
  await world.deletePod("new");
  await world.createPod("last", { on: "n1", uses: ["v"] });
  await world.advance(MINUTE);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
  expect(world.attachmentOf("v", "n2")).toBeUndefined();
  expect(world.violations).toEqual([]);
});

test("W-1: of two attachments of a single-node volume the one on the node that uses it stays, and the other is taken back", async () => {
  const world = await given({
    nodes: { n1: { inUse: ["v"] }, n2: {} },
    attachments: [{ volume: "v", node: "n1", attached: true }],
    attacher: "by-hand",
  });
  await underOriginal(world, async () => {
    await world.createPod("web", { on: "n2", uses: ["v"] });
    await world.advance(10_000);
    expect(world.attachmentOf("v", "n2")).toBeDefined();
  });
  await world.advance(10 * MINUTE);
  expect(writes(world)).toEqual(["DELETE va v@n2"]);
  world.forget();

  await world.setInUse("n1", []);
  await world.settle();
  await world.hand.release("v", "n1");
  await world.settle();

  expect(writes(world)).toEqual(["DELETE va v@n1", "POST va v@n2"]);
});

test("W-28: an attachment that the original did not understand is detached by ours", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} } });
  await underOriginal(world, async () => {
    await world.hand.create("v", "n1", { held: true, source: { persistentVolumeName: "pv-v" } });
    await world.client.delete(persistentVolumes, { name: "pv-v" });
  });

  await world.advance(MINUTE);

  expect(world.attachmentOf("v", "n1")).toBeUndefined();
});

test("the time under the original counts for nothing towards a force of ours", async () => {
  const world = await given({
    nodes: { n1: { attached: ["v"], inUse: ["v"], ready: "Unknown" } },
    attachments: [{ volume: "v", node: "n1", attached: true }],
  });
  await world.advance(3 * MINUTE);
  await underOriginal(world, () => world.advance(5 * MINUTE));

  await world.advance(2 * MINUTE);
  expect(writes(world)).toEqual([]);

  await world.advance(2 * MINUTE);
  expect(writes(world)).toEqual(["PATCH node n1 []", "DELETE va v@n1"]);
});
