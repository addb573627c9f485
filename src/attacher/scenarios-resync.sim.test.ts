import { describe, expect, test } from "vitest";
import { F, given, NODE_ID, type Sketch } from "./stage.testing.ts";

const LISTS: Sketch = { driver: { listsPublishedNodes: true } };

/** Numbers are those of the specification's scenarios. */
describe("the driver's own list of volumes", () => {
  test("65: what is called attached and is not listed is published again, and its status told again", async () => {
    const world = await given(LISTS);
    await world.createVolume("pv1");
    await world.createAttached("va1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(["hold va1", "publish vol-pv1 on id-n1", "attached va1"]);
    await world.advance(120_000);
    expect(world.take()).toEqual([]);
  });

  test("W15: a forced publish that fails leaves it attached, tells the error, and is tried again", async () => {
    const world = await given(LISTS);
    await world.createVolume("pv1");
    await world.createAttached("va1");
    world.driver.fail("publish", 13, "no");
    world.start();
    await world.settle();
    expect((await world.attachment("va1"))!.status).toMatchObject({
      attached: true,
      attachError: { errorCode: 13 },
    });

    await world.advance(1_000);
    expect((await world.attachment("va1"))!.status).toEqual({ attached: true });
    expect(world.driver.publishedOn("vol-pv1")).toEqual(["id-n1"]);
  });

  test("66, 68, 69: agreement, volumes without attachments and attachments of others are left alone", async () => {
    const world = await given(LISTS);
    await world.createVolume("pv1");
    await world.createAttached("va1");
    await world.createAttached("va2", { attacher: "other.test" });
    world.driver.storages.publish("vol-pv1", "id-n1");
    for (const node of ["id-n1", "id-n7"]) world.driver.storages.publish("vol-nobody", node);
    world.start();
    await world.settle();

    expect(world.take()).toEqual([]);
    expect(world.log.filter(({ level }) => level === "warn")).toEqual([]);
  });

  test("67: a deleting one that is listed is unpublished, though nothing is left to write", async () => {
    const world = await given(LISTS);
    await world.createVolume("pv1");
    const metadata = { finalizers: ["z/last"], annotations: { [NODE_ID]: "id-n1" } };
    await world.createAttachment("va1", { metadata });
    await world.deleteAttachment("va1");
    world.driver.storages.publish("vol-pv1", "id-n1");
    world.start();
    await world.settle();

    expect(world.take()).toEqual(["unpublish vol-pv1 from id-n1"]);
    await world.advance(120_000);
    expect(world.take()).toEqual([]);
  });

  test("70: a list that fails is asked for again after the interval", async () => {
    const world = await given(LISTS);
    await world.createVolume("pv1");
    await world.createAttached("va1");
    world.driver.fail("list", 13, "no");
    world.start();
    await world.advance(59_000);
    expect(world.take()).toEqual([]);

    await world.advance(2_000);
    expect(world.take()).toContain("publish vol-pv1 on id-n1");
  });

  test("71: pages are chained by their tokens, and a volume on two of them has the nodes of both", async () => {
    const world = await given({ ...LISTS, options: { maxEntries: 2 } });
    await world.createVolume("pv1");
    await world.createAttached("va1");
    const entry = (volumeId: string, ...publishedNodeIds: string[]) => ({ volumeId, publishedNodeIds });
    world.driver.pages = [
      { entries: [entry("vol-pv1", "id-n1"), entry("b")], nextToken: "1" },
      { entries: [entry("vol-pv1", "id-n7"), entry("d")], nextToken: "2" },
      { entries: [entry("e"), entry("f")], nextToken: "" },
    ];
    world.start();
    await world.settle();

    expect(world.driver.lists).toEqual([
      { maxEntries: 2, startingToken: "" },
      { maxEntries: 2, startingToken: "1" },
      { maxEntries: 2, startingToken: "2" },
    ]);
    expect(world.take()).toEqual([]);
  });

  for (const [title, page] of [
    ["a token twice", { entries: [{ volumeId: "a", publishedNodeIds: [] }], nextToken: "0" }],
    ["an empty page with a token", { entries: [], nextToken: "7" }],
  ] as const) {
    test(`that gives out ${title} is not believed`, async () => {
      const world = await given(LISTS);
      await world.createVolume("pv1");
      await world.createAttached("va1");
      world.driver.pages = [page];
      world.start();
      await world.settle();

      expect(world.take()).toEqual([]);
      expect(world.log.some(({ text }) => text.includes("lead nowhere"))).toBe(true);
    });
  }

  for (const [title, entries] of [
    ["new volumes", (page: number) => [{ volumeId: `vol-${page}`, publishedNodeIds: ["id-n9"] }]],
    ["the same volume", () => [{ volumeId: "vol-pv1", publishedNodeIds: ["id-n1"] }]],
  ] as const)
    test(`that goes on for ever with ${title} is left, says so, and is not believed`, async () => {
      const world = await given(LISTS);
      await world.createVolume("pv1");
      await world.createAttached("va1");
      // No time passes: a deadline alone would never come.
      world.driver.listVolumes = ({ startingToken }) => {
        const page = Number(startingToken) + 1;
        return Promise.resolve({ entries: entries(page), nextToken: String(page) });
      };
      world.start();
      await world.settle();

      expect(world.take()).toEqual([]);
      expect(world.log.some(({ text }) => text.includes("not at its end after 10000 pages"))).toBe(true);
    });

  test("an attachment that is just being attached is not forced", async () => {
    const world = await given({ ...LISTS, options: { reconcileSyncMs: 1_000 } });
    await world.createVolume("pv1");
    world.driver.delayMs = 3_000;
    world.start();
    await world.createAttachment("va1");
    await world.advance(20_000);

    expect(world.driver.publishes).toHaveLength(1);
    expect((await world.attachment("va1"))!.metadata.finalizers).toEqual([F]);
  });
});
