import { describe, expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import { persistentVolumes } from "../kube/api/persistent-volume.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { NO_FAULTS, type NetworkFaults } from "../sim/faulty-transport.ts";
import { forSeeds, inProportion } from "../sim/seeds.ts";
import { volumeAttachmentName } from "../volumes/names.ts";
import { HANDLE_ANNOTATION } from "./names.ts";
import { DRIVER, F, given, NODE_ID, type AttacherWorld } from "./stage.testing.ts";

/** A PersistentVolume is made anew under its name with another handle, and two attachments share a volume and a node. */

const nameFor = (volumeHandle: string, node = "n1") =>
  volumeAttachmentName({ driver: DRIVER, volumeHandle }, node);
const source = (volumeHandle: string) => ({ csi: { driver: DRIVER, volumeHandle } });

async function replaceVolume(world: AttacherWorld, name: string, volumeHandle: string): Promise<void> {
  // Deleted first: nobody puts a finalizer onto what is being deleted.
  await world.deleteVolume(name);
  const value = { metadata: { finalizers: null } };
  await world.client.patch(persistentVolumes, { name }, { type: "merge", value });
  await world.createVolume(name, source(volumeHandle));
}

describe("a PersistentVolume made anew with another handle", () => {
  for (const name of ["by-hand", nameFor("old")])
    test(`is not what attachment ${name.slice(0, 8)} is detached by: its record is`, async () => {
      const world = await given();
      await world.createVolume("pv1", source("old"));
      world.start();
      await world.createAttachment(name);
      await world.settle();
      expect(world.driver.publishedOn("old")).toEqual(["id-n1"]);

      await replaceVolume(world, "pv1", "new");
      await world.settle();
      await world.deleteAttachment(name);
      await world.settle();

      expect(world.driver.unpublishes.map(({ volumeId }) => volumeId)).toEqual(["old"]);
      expect(world.driver.publishedOn("old")).toEqual([]);
      expect(await world.attachment(name)).toBeUndefined();
      expect(JSON.stringify(world.log)).toContain("detached by the record of its attach");
    });

  test("is not published under the attachment of the old one, which may still be on the node", async () => {
    const world = await given();
    await world.createVolume("pv1", source("old"));
    world.start();
    world.driver.fail("publish", 4, "deadline");
    await world.createAttachment("va1");
    await world.advance(500);

    await replaceVolume(world, "pv1", "new");
    await world.advance(10_000);
    expect(world.driver.publishes.map(({ volumeId }) => volumeId)).toEqual(["old"]);
    expect(world.waitOf("va1")).toBe("volume-replaced PersistentVolume/pv1");
    expect((await world.attachment("va1"))?.status?.attachError?.message).toContain('"old"');
    expect((await world.attachment("va1"))?.metadata.annotations?.[HANDLE_ANNOTATION]).toBe("old");
    await world.deleteAttachment("va1");
    await world.settle();

    expect(world.driver.unpublishes.map(({ volumeId }) => volumeId)).toEqual(["old"]);
  });

  test("is published on another node: what is recorded for the old disk says nothing of the new one", async () => {
    const world = await given();
    await world.createVolume("pv1", source("old"));
    world.start();
    await world.createAttachment("va1");
    await world.settle();

    await replaceVolume(world, "pv1", "new");
    await world.createNode("n2");
    await world.createAttachment("va2", { node: "n2" });
    await world.settle();

    expect(world.driver.publishedOn("old")).toEqual(["id-n1"]);
    expect(world.driver.publishedOn("new")).toEqual(["id-n2"]);
  });

  test("is refused under a name that was made for the old one, before anything was written", async () => {
    const world = await given();
    await world.createVolume("pv1", source("new"));
    world.start();

    await world.createAttachment(nameFor("old"));
    await world.settle();

    expect(world.driver.publishes).toEqual([]);
    expect(world.waitOf(nameFor("old"))).toBe("volume-replaced PersistentVolume/pv1");
  });

  test("is refused for a detach without a record, whose name says that it was made for another handle", async () => {
    const world = await given();
    await world.createVolume("pv1", source("new"));
    await world.createAttached(nameFor("old"));
    world.start();

    await world.deleteAttachment(nameFor("old"));
    await world.settle();
    expect(world.driver.unpublishes).toEqual([]);
    const message = (await world.attachment(nameFor("old")))?.status?.detachError?.message;
    expect(message).toContain(HANDLE_ANNOTATION);
    await world.client.patch(
      volumeAttachments,
      { name: nameFor("old") },
      { type: "merge", value: { metadata: { annotations: { [HANDLE_ANNOTATION]: "old" } } } },
    );
    await world.settle();

    expect(world.driver.unpublishes.map(({ volumeId }) => volumeId)).toEqual(["old"]);
  });

  test("and a record that somebody edited, against name and volume: refused, and it says so", async () => {
    const world = await given();
    await world.createVolume("pv1", source("right"));
    await world.createAttached(nameFor("right"), {
      metadata: { finalizers: [F], annotations: { [NODE_ID]: "id-n1", [HANDLE_ANNOTATION]: "wrong" } },
    });
    world.start();

    await world.deleteAttachment(nameFor("right"));
    await world.settle();

    expect(world.driver.unpublishes).toEqual([]);
    expect(world.waitOf(nameFor("right"))).toBe("volume-replaced PersistentVolume/pv1");
  });
});

describe("two attachments of one volume on one node", () => {
  async function twins(): Promise<AttacherWorld> {
    const world = await given();
    await world.createVolume("pv1", source("v"));
    world.start();
    await world.createAttachment("by-hand");
    await world.createAttachment(nameFor("v"));
    await world.settle();
    return world;
  }

  test("one is deleted: the volume stays on the node for the other, and goes with it", async () => {
    const world = await twins();

    await world.deleteAttachment("by-hand");
    await world.settle();
    expect(world.driver.unpublishes).toEqual([]);
    expect(await world.attachment("by-hand")).toBeUndefined();
    await world.deleteAttachment(nameFor("v"));
    await world.settle();

    expect(world.driver.unpublishes).toHaveLength(1);
    expect(world.driver.publishedOn("v")).toEqual([]);
  });

  test("both are deleted at once: the volume is taken off", async () => {
    const world = await twins();

    await Promise.all([world.deleteAttachment("by-hand"), world.deleteAttachment(nameFor("v"))]);
    await world.advance(5_000);

    expect(world.driver.publishedOn("v")).toEqual([]);
    expect(world.attachmentsNow()).toEqual([]);
  });

  test("the other was removed by hand and the cache does not know: the server is asked, and the volume taken off", async () => {
    const world = await twins();
    const twin = `get volumeattachments ${nameFor("v")}`;
    world.transport.spoil(twin, { kind: "delay", ms: 500 });
    await world.deleteAttachment("by-hand");
    const asked = () => world.journal.includes(twin);
    expect(await world.scheduler.runUntilTrue(asked, { withinMs: 1_000 })).toBe(true);

    world.held.add("volumeattachments");
    const value = { metadata: { finalizers: null } };
    await world.client.patch(volumeAttachments, { name: nameFor("v") }, { type: "merge", value });
    await world.deleteAttachment(nameFor("v"));
    await world.advance(1_000);
    world.held.clear();
    await world.advance(5_000);

    expect(world.driver.publishedOn("v")).toEqual([]);
    expect(world.attachmentsNow()).toEqual([]);
  });

  test("the second comes while the first is being detached: it is attached after that", async () => {
    const world = await given();
    await world.createVolume("pv1", source("v"));
    world.start();
    await world.createAttachment("by-hand");
    await world.settle();
    world.driver.delayMs = 3_000;
    await world.deleteAttachment("by-hand");
    await world.advance(1_000);

    await world.createAttachment(nameFor("v"));
    await world.advance(500);
    expect(world.waitOf(nameFor("v"))).toBe("being-detached VolumeAttachment/by-hand");
    await world.advance(10_000);

    expect(world.journal.filter((line) => /publish/.test(line))).toEqual([
      "publish v on id-n1",
      "unpublish v from id-n1",
      "publish v on id-n1",
    ]);
    expect(world.driver.publishedOn("v")).toEqual(["id-n1"]);
  });
});

const FAULTS: NetworkFaults = {
  ...NO_FAULTS,
  unreachable: 0.04,
  lostAnswer: 0.05,
  serverError: 0.05,
  cut: 0.03,
  repeated: 0.05,
  latencyMsMax: 60,
};

/** A volume `pv1` whose handle changes now and then, attachments of three names for it on one node, and every fault. */
async function act(world: AttacherWorld, random: Random): Promise<void> {
  if (chance(random, 0.12))
    return replaceVolume(world, "pv1", pick(random, ["a", "b"])).catch(() => undefined);
  const name = pick(random, ["by-hand", nameFor("a"), nameFor("b")]);
  const existing = await world.attachment(name);
  if (existing === undefined) await world.createAttachment(name);
  else if (!existing.metadata.deletionTimestamp) await world.deleteAttachment(name);
}

test("whatever is replaced, shared or lost: no disk leaves an attachment that is called attached, and none is left behind", async () => {
  let detaches = 0;
  await forSeeds(6, async (random, seed) => {
    let faults = NO_FAULTS;
    const world = await given({ seed, network: () => faults, options: { retryMaxMs: 5_000 } });
    await world.createVolume("pv1", source("a"));
    const violations: string[] = [];
    world.driver.storages.on({
      unpublished({ handle }) {
        detaches++;
        const robbed = world
          .attachmentsNow()
          .filter(({ metadata, status }) => status?.attached && !metadata.deletionTimestamp)
          .filter(({ metadata }) => metadata.annotations?.[HANDLE_ANNOTATION] === handle);
        for (const { metadata } of robbed) violations.push(`${handle} taken from ${metadata.name}`);
      },
    });
    world.start();
    faults = FAULTS;
    for (let step = 0; step < 60; step++) {
      await act(world, random);
      if (chance(random, 0.08)) {
        world.kill();
        world.start();
      }
      world.driver.delayMs = chance(random, 0.3) ? random.int(2_000) : 0;
      world.driver.trouble = () =>
        chance(random, 0.15) ? { kind: "error", code: 13, text: "internal" } : undefined;
      await world.advance(random.int(2_500));
    }

    faults = NO_FAULTS;
    world.driver.trouble = () => undefined;
    world.driver.delayMs = 0;
    for (const { metadata } of world.attachmentsNow()) await world.deleteAttachment(metadata.name ?? "");
    await world.advance(60_000);

    expect(violations).toEqual([]);
    expect(world.attachmentsNow()).toEqual([]);
    for (const { publishedOn } of world.driver.storages.volumes.values()) expect(publishedOn.size).toBe(0);
  });
  // Without detaches nothing was tried.
  expect(detaches).toBeGreaterThan(inProportion(50));
});
