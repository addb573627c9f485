import { expect, test } from "vitest";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld, type WorldSketch } from "../sim/attach-detach-world.ts";
import type { AttachablePlugin } from "../volumes/plugin.ts";

/** Scenarios 44 to 54 of the specification. */

const TIMED_OUT =
  'AttachVolume.Attach failed for volume "pv-v" : timed out waiting for external-attacher of csi.example.com CSI driver to attach volume v';

const byHand = (sketch: WorldSketch = {}) =>
  given({ nodes: ["n1", "n2"], pods: { web: { on: "n1", uses: ["v"] } }, attacher: "by-hand", ...sketch });

const failures = (world: AttachDetachWorld, pod: string) =>
  world.eventsOf(pod, "FailedAttachVolume").map(({ message }) => message);

const successes = (world: AttachDetachWorld, pod: string) =>
  world.eventsOf(pod, "SuccessfulAttachVolume").length;

const stateOf = (world: AttachDetachWorld, node: string) =>
  world.controller.controller.report({ node }).volumes.map(({ state }) => state);

test("44: an error of the driver is told, the attachment kept, and the node not told of a volume", async () => {
  const world = await byHand();
  await world.advance(700);

  await world.hand.failAttach("v", "n1", "disk vol-1 is broken");
  await world.settle();

  expect(world.eventsOf("web")).toMatchObject([
    {
      type: "Warning",
      reason: "FailedAttachVolume",
      message: 'AttachVolume.Attach failed for volume "pv-v" : disk vol-1 is broken',
    },
  ]);
  expect(stateOf(world, "n1")).toEqual(["uncertain"]);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeUndefined();
  expect(world.requests()).toEqual(["POST va v@n1"]);
});

test("45: retries come 0.5, 1, 2, 4 ... s after each failure, at most 122 s", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} } });
  world.spoil("POST va v@n1", { kind: "status", status: 403 });

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(15 * 60_000);

  const sentMs = world
    .timedRequests()
    .filter(({ line }) => line.startsWith("POST va"))
    .map(({ atMs }) => atMs);
  const gapsMs = sentMs.slice(1).map((atMs, index) => atMs - (sentMs[index] ?? 0));
  const atLeastMs = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000, 122_000];
  expect(gapsMs.length).toBeGreaterThanOrEqual(atLeastMs.length);
  for (const [index, leastMs] of atLeastMs.entries()) {
    expect(gapsMs[index], `retry ${index + 1}`).toBeGreaterThanOrEqual(leastMs);
    expect(gapsMs[index], `retry ${index + 1}`).toBeLessThan(leastMs * 1.1 + 1_000);
  }
});

test("46, 47: a silent attacher is given up after two minutes; when it answers at last, that counts", async () => {
  const world = await byHand();

  await world.advance(119_000);
  expect(failures(world, "web")).toEqual([]);
  await world.advance(2_000);
  expect(failures(world, "web")).toEqual([TIMED_OUT]);
  expect(world.attachmentOf("v", "n1")?.metadata.deletionTimestamp).toBeUndefined();
  await world.hand.attach("v", "n1");
  await world.advance(2_000);

  expect(world.requests()).toEqual(["POST va v@n1", "GET va v@n1", "PATCH node n1 [v]"]);
  expect(successes(world, "web")).toBe(1);
});

test("48: an attachment that is being deleted is waited for, and then made anew", async () => {
  const world = await byHand({
    attachments: [{ volume: "v", node: "n1", attached: true }],
    started: false,
  });
  await world.client.delete(volumeAttachments, { name: world.labels.attachmentName("v", "n1") });
  world.startController();
  await world.settle();
  expect(failures(world, "web")).toEqual([
    'AttachVolume.Attach failed for volume "pv-v" : volume attachment is being deleted',
  ]);
  expect(world.requests()).toEqual([]);

  await world.hand.release("v", "n1");
  await world.advance(130_000);

  expect(world.requests()).toEqual(["POST va v@n1"]);
});

test("49: an attachment that somebody else made first is taken as it is", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} }, attacher: "by-hand" });
  world.spoil("POST va v@n1", { kind: "delay", ms: 200 }, 1);
  world.held.add("volumeattachments");

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(100);
  await world.hand.create("v", "n1");
  await world.advance(200);
  world.held.clear();
  await world.hand.attach("v", "n1");
  await world.settle();

  expect(world.requests()).toEqual(["POST va v@n1", "GET va v@n1", "PATCH node n1 [v]"]);
  expect(failures(world, "web")).toEqual([]);
});

test("49: an attachment whose creation was never confirmed is not made twice", async () => {
  const world = await given({ nodes: ["n1"], volumes: { v: {} } });
  world.spoil("POST va v@n1", { kind: "answer-lost" }, 1);

  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(5_000);

  expect(world.requests()).toEqual(["POST va v@n1 (answer lost)", "GET va v@n1", "PATCH node n1 [v]"]);
});

test("50: an attachment that vanishes while it is waited for is made again, once", async () => {
  const world = await byHand();
  await world.hand.removeByHand("v", "n1");

  await world.advance(130_000);
  expect(world.requests()).toEqual(["POST va v@n1", "POST va v@n1"]);
  await world.hand.attach("v", "n1");
  await world.advance(2_000);

  expect(world.volumesAttached("n1")).toEqual(["v"]);
});

test("51: after a failed attach the pod goes: its attachment goes too, and another node can have the volume", async () => {
  const world = await byHand();
  await world.hand.failAttach("v", "n1", "no");
  await world.settle();
  world.forget();

  await world.removePod("web");
  await world.settle();
  expect(world.requests()).toEqual(["GET node n1", "DELETE va v@n1"]);
  await world.hand.release("v", "n1");
  await world.createPod("other", { on: "n2", uses: ["v"] });
  await world.settle();

  expect(world.attachmentOf("v", "n2")).toBeDefined();
});

test("52: an attach that timed out but worked is undone before another node gets the volume", async () => {
  const world = await given({ nodes: ["n1", "n2"], volumes: { v: {} } });
  world.attacherOf("csi.example.com").delayMs = 150_000;
  await world.createPod("web", { on: "n1", uses: ["v"] });
  await world.advance(125_000);
  expect(failures(world, "web")).toEqual([TIMED_OUT]);

  await world.removePod("web");
  await world.createPod("other", { on: "n2", uses: ["v"] });
  await world.advance(15 * 60_000);

  expect(world.volumesAttached("n2")).toEqual(["v"]);
  expect(world.storages.calls).toEqual(["publish n1", "unpublish n1", "publish n2"]);
  expect(world.violations).toEqual([]);
});

test("53: a plugin that is gone when the attach begins is told as such", async () => {
  const plugins: AttachablePlugin[] = [brokenPlugin()];
  const inline = [{ name: "disk", flexVolume: { driver: "example/flex" } }];
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", inline } }, plugins });
  expect(failures(world, "web")).toEqual(['AttachVolume.Attach failed for volume "disk" : it is broken']);

  plugins.length = 0;
  await world.advance(1_000);

  const prefix = 'AttachVolume.FindAttachablePluginBySpec failed for volume "disk"';
  expect(failures(world, "web").some((message) => message.startsWith(prefix))).toBe(true);
});

test("54: a failure is told to the pods that waited when the attach began", async () => {
  const world = await byHand({
    pods: { one: { on: "n1", uses: ["v"] }, two: { on: "n1", uses: ["v"] } },
  });
  await world.createPod("late", { on: "n1", uses: ["v"] });
  await world.settle();

  await world.hand.failAttach("v", "n1", "no");
  await world.settle();

  expect(failures(world, "one")).toEqual(['AttachVolume.Attach failed for volume "pv-v" : no']);
  expect(failures(world, "two")).toEqual(['AttachVolume.Attach failed for volume "pv-v" : no']);
  expect(failures(world, "late")).toEqual([]);
});

/** A FlexVolume whose attach never works. */
function brokenPlugin(): AttachablePlugin {
  return {
    name: "example/flex",
    canSupport: (spec) => spec.kind === "inline" && spec.volume.flexVolume !== undefined,
    needsAttach: () => true,
    volumeName: () => "disk",
    metricName: () => "example/flex",
    attach: () => Promise.reject(new Error("it is broken")),
    detach: () => Promise.resolve(),
    verify: () => "unknown",
  };
}
