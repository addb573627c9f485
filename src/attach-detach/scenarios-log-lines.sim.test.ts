import { expect, test } from "vitest";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { OUT_OF_SERVICE } from "../sim/cluster-objects.ts";

/** One line for each change of state, with how long it took; silence while nothing changes. */

const MINUTE = 60_000;
const ABOUT_VOLUMES =
  /^(attached|detached|attach failed|detach failed|attach called off|detach called off|detach forced|attachment (gone|lost)|volume frozen)$/;

function lines(world: AttachDetachWorld) {
  return world.log.filter(({ message }) => ABOUT_VOLUMES.test(message));
}

const messages = (world: AttachDetachWorld) => lines(world).map(({ message }) => message);

test("a volume's life is two lines, with volume, node, pod and duration; an hour of rest adds none", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } }, attacher: "by-hand" });
  await world.advance(2_000);
  await world.hand.attach("v", "n1");
  await world.advance(60 * MINUTE);
  await world.removePod("web");
  await world.advance(1_000);
  await world.hand.release("v", "n1");
  await world.advance(60 * MINUTE);

  expect(messages(world)).toEqual(["attached", "detached"]);
  const [attached, detached] = lines(world).map(({ fields }) => fields);
  expect(attached).toMatchObject({ node: "n1", pods: ["default/web"] });
  expect(attached?.["volume"]).toBe(detached?.["volume"]);
  expect(attached?.["tookMs"]).toBeGreaterThan(2_000);
  expect(attached?.["tookMs"]).toBeLessThan(3_000);
  expect(detached?.["tookMs"]).toBeGreaterThan(900);
});

test("a failure is one line with its class, what was said and when it is tried again", async () => {
  const world = await given({ nodes: ["n1"], pods: { web: { on: "n1", uses: ["v"] } }, attacher: "by-hand" });
  await world.hand.failAttach("v", "n1", "the rack is dark");
  await world.settle();

  expect(lines(world)).toMatchObject([
    {
      message: "attach failed",
      fields: { node: "n1", class: "DriverFailed", error: "the rack is dark", pods: ["default/web"] },
    },
  ]);
  expect(lines(world)[0]?.fields["retryInMs"]).toBeGreaterThan(0);
  expect(lines(world)[0]?.fields["tookMs"]).toBeGreaterThanOrEqual(0);
});

for (const [what, act, expected] of [
  [
    "an attach that no pod waits for any more",
    (world: AttachDetachWorld) => world.removePod("web"),
    ["attach called off", "detached"],
  ],
  [
    "a VolumeAttachment that somebody deletes while it is attached",
    async (world: AttachDetachWorld) => {
      await world.hand.attach("v", "n1");
      await world.settle();
      await world.setInUse("n1", ["v"]);
      await world.hand.removeByHand("v", "n1");
    },
    ["attached", "attachment gone"],
  ],
  [
    "a forced detach",
    async (world: AttachDetachWorld) => {
      await world.hand.attach("v", "n1");
      await world.settle();
      await world.setInUse("n1", ["v"]);
      await world.removePod("web");
      await world.setTaints("n1", [{ key: OUT_OF_SERVICE, effect: "NoExecute" }]);
      await world.settle();
      await world.hand.release("v", "n1");
    },
    ["attached", "detach forced", "detached"],
  ],
] as const)
  test(`${what}: ${expected.join(", ")}`, async () => {
    const world = await given({
      nodes: ["n1"],
      pods: { web: { on: "n1", uses: ["v"] } },
      attacher: "by-hand",
    });

    await act(world);
    await world.settle();

    expect(messages(world)).toEqual(expected);
  });

test("whatever fails, there are as many lines as operations that the histogram counts", async () => {
  const labels = Array.from({ length: 12 }, (_, index) => `v${index}`);
  const pods = Object.fromEntries(labels.map((label) => [`pod-${label}`, { on: "n1", uses: [label] }]));
  const world = await given({ nodes: ["n1"], pods, started: false });
  world.startController();
  world.spoil("POST va", { kind: "status", status: 500 }, 5);
  world.spoil("DELETE va", { kind: "status", status: 500 }, 7);
  await world.advance(MINUTE);
  for (const label of labels) await world.removePod(`pod-${label}`);
  await world.advance(3 * MINUTE);

  for (const [message, operation_name, status] of [
    ["attached", "volume_attach", "success"],
    ["attach failed", "volume_attach", "fail-unknown"],
    ["detached", "volume_detach", "success"],
    ["detach failed", "volume_detach", "fail-unknown"],
  ] as const) {
    const counted = await world.metric("storage_operation_duration_seconds_count", {
      operation_name,
      status,
    });
    const said = messages(world).filter((line) => line === message).length;
    expect(said, message).toBeGreaterThan(0);
    expect([message, said]).toEqual([message, counted]);
  }
});
