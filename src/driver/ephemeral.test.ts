import { expect, test } from "vitest";
import { createDyingHost } from "./dying-host.testing.ts";
import {
  codeOf,
  given,
  mountCapability,
  openPeer,
  STATE,
  TARGET,
  blockCapability,
  type Peer,
} from "./stage.testing.ts";

/** A volume of one pod, as kubelet asks for it: no create, no attach, no stage. */
const pod = {
  volumeId: "csi-0123/../../etc",
  targetPath: TARGET,
  volumeCapability: mountCapability(),
  volumeContext: { "csi.storage.k8s.io/ephemeral": "true" },
};

const up = ({ node }: Peer) => node.nodePublishVolume(pod);
const down = ({ node }: Peer) => node.nodeUnpublishVolume({ volumeId: pod.volumeId, targetPath: TARGET });

test("published at once, with room and statistics; gone with its data when unpublished; nobody lists it", async () => {
  const world = await given();

  for (let again = 0; again < 2; again++) await up(world);
  world.host.writeData(TARGET, "scratch", "x");

  expect(
    (await world.node.nodeGetVolumeStats({ volumeId: pod.volumeId, volumePath: TARGET })).usage[0]?.total,
  ).toBe(104_857_600n);
  expect((await world.controller.listVolumes({})).entries).toEqual([]);
  for (let again = 0; again < 2; again++) await down(world);
  expect(await world.host.loops.list()).toEqual([]);
  expect(await world.host.mounts.list()).toEqual([]);
  expect(world.host.tree(STATE).filter((path) => /vol-|eph-/.test(path))).toEqual([]);
  expect(world.host.tree("/kubelet/pods")).toEqual([]);
});

test("a raw one is refused, and a target that cannot be used leaves nothing", async () => {
  const world = await given();
  world.host.makeSymlink(TARGET, "/kubelet");

  expect(await codeOf(world.node.nodePublishVolume({ ...pod, volumeCapability: blockCapability() }))).toBe(
    "INVALID_ARGUMENT",
  );
  expect(await codeOf(up(world))).toBe("INVALID_ARGUMENT");
  expect(world.host.tree(STATE).filter((path) => /vol-|eph-/.test(path))).toEqual([]);
  expect(await world.host.loops.list()).toEqual([]);
});

test("killed at any step on the way up or down, the retry ends with nothing left", async () => {
  for (let step = 0, over = false; !over; step++) {
    const world = await given();
    const dying = createDyingHost(world.host, { atStep: step });
    const doomed = openPeer(dying.host, world.clock, {}, `doomed ${step}`);
    try {
      await doomed.driver.recover();
      await up(doomed);
      await down(doomed);
    } catch (error) {
      if (!dying.isDead()) throw error;
    }
    over = !dying.isDead();

    const next = await world.restart();
    await up(next);
    next.host.writeData(TARGET, "scratch", "x");
    await down(next);

    expect(await next.host.loops.list()).toEqual([]);
    expect(next.host.tree(STATE).filter((path) => /vol-|eph-/.test(path))).toEqual([]);
  }
});
