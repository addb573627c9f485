import { expect, test } from "vitest";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";

/** The cache says one thing about a VolumeAttachment and the server another; or it comes back while it is being deleted. */

const MINUTE = 60_000;

/** The watch shows `v` attached to n1, where `web` wants it, and falls silent; then the server knows better. */
async function contradicted(): Promise<AttachDetachWorld> {
  const world = await given({
    nodes: ["n1"],
    pods: { web: { on: "n1", uses: ["v"] } },
    attachments: [{ volume: "v", node: "n1", attached: true }],
    attacher: "by-hand",
    started: false,
  });
  world.startController();
  world.spoil("GET va v@n1", { kind: "delay", ms: 1_000 }, 1);
  await world.advance(500);
  world.held.add("volumeattachments");
  await world.hand.setStatus("v", "n1", { attached: false });
  await world.advance(3_000);
  return world;
}

test("a cache that says attached while the server says not: one read, and an error after two minutes", async () => {
  const world = await contradicted();
  expect(world.requests()).toEqual(["GET va v@n1"]);

  await world.advance(10 * MINUTE);
  expect(world.requests().length).toBeLessThanOrEqual(5);
  expect(world.volumesAttached("n1")).toEqual([]);
  expect(world.eventsOf("web", "FailedAttachVolume")[0]?.message).toContain("timed out waiting");
  world.held.clear();
  await world.hand.setStatus("v", "n1", { attached: true });
  await world.advance(3 * MINUTE);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
});

test("what the watch shows next is asked about again, at once", async () => {
  const world = await contradicted();
  world.forget();

  await world.hand.setStatus("v", "n1", { attached: true });
  world.held.clear();
  await world.settle();

  expect(world.requests()).toEqual(["GET va v@n1", "PATCH node n1 [v]"]);
});

/** Somebody makes the VolumeAttachment anew: so long after the old one went, with answers and watch events so late. */
const CASES = [0, 1, 5, 30, 60].flatMap((createdMs) =>
  [0, 3, 40].flatMap((answerMs) => [0, 20, 100].map((watchMs) => ({ createdMs, answerMs, watchMs }))),
);

test(`a VolumeAttachment that is made anew while its detach ends is not forgotten: ${CASES.length} orders`, async () => {
  for (const { createdMs, answerMs, watchMs } of CASES) {
    const world = await given({
      nodes: ["n1", "n2"],
      pods: { web: { on: "n1", uses: ["v"] } },
      attacher: "by-hand",
    });
    await world.hand.attach("v", "n1");
    await world.settle();
    world.spoil("DELETE va v@n1", { kind: "answer-late", ms: answerMs });
    await world.removePod("web");
    const deleting = () => world.attachmentOf("v", "n1")?.metadata.deletionTimestamp !== undefined;
    expect(await world.scheduler.runUntilTrue(deleting, { withinMs: MINUTE })).toBe(true);

    if (watchMs > 0) world.held.add("volumeattachments");
    await world.hand.release("v", "n1");
    await world.advance(createdMs);
    await world.hand.create("v", "n1", { attached: true });
    await world.advance(watchMs);
    world.held.clear();
    await world.createPod("other", { on: "n2", uses: ["v"] });
    await world.advance(5_000);
    const seen = JSON.stringify({ createdMs, answerMs, watchMs });
    expect(world.attachmentOf("v", "n2"), seen).toBeUndefined();
    expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp, seen).toBeDefined();
    await world.hand.release("v", "n1");
    await world.advance(5_000);

    expect(world.attachmentOf("v", "n2"), seen).toBeDefined();
  }
});

test("a VolumeAttachment that came and went while its watch was silent is not waited for once the list was taken anew", async () => {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} }, attacher: "by-hand" });
  world.held.add("volumeattachments");
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(1_000);
  await world.hand.attach("v", "n1");
  await world.removePod("web");
  await world.advance(1_000);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeDefined();
  await world.hand.release("v", "n1");
  await world.createPod("other", { on: "n2", uses: ["v"] });
  await world.advance(1_000);
  expect(world.attachmentOf("v", "n2")).toBeUndefined();

  world.cutOff();
  world.held.clear();
  await world.reconnect();
  await world.advance(10_000);

  expect(world.attachmentOf("v", "n2")).toBeDefined();
});
