import { describe, expect, test } from "vitest";
import { given, type AttacherWorld } from "./stage.testing.ts";

/**
 * What the API server refuses for good is told where people look, and tried again with growing pauses; what it only could not
 * take at the moment is not, because the next try takes care of it.
 */

async function attaching(context: Readonly<Record<string, string>> = {}): Promise<AttacherWorld> {
  const world = await given();
  await world.createVolume("pv1");
  world.driver.context = context;
  world.start();
  return world;
}

const errorOf = async (world: AttacherWorld) =>
  (await world.attachment("va1"))?.status?.attachError?.message ?? "";

describe("a publish_context that the API server refuses", () => {
  for (const [what, context, says] of [
    ["too large", { blob: "x".repeat(300_000) }, /1 entries, 300004 characters.*attachmentMetadata/],
    ["many small ones that are too large together", many(300), /300 entries/],
    ["an empty key", { "": "x" }, /attachmentMetadata/],
  ] as const)
    test(`${what}: is the attachment's error, and tried again`, async () => {
      const world = await attaching(context);

      await world.createAttachment("va1");
      await world.settle();

      expect(await errorOf(world)).toMatch(
        /^the driver has published the volume, but the API server refuses/,
      );
      expect(await errorOf(world)).toMatch(says);
      expect((await world.attachment("va1"))?.status?.attached).toBe(false);
      expect(world.waitOf("va1")).toMatch(/^backoff /);

      world.driver.context = { fixed: "yes" };
      await world.advance(60_000);
      const { status } = (await world.attachment("va1"))!;
      expect(status).toEqual({ attached: true, attachmentMetadata: { fixed: "yes" } });
    });

  test("a pass a pause, not one after another", async () => {
    const world = await attaching({ blob: "x".repeat(300_000) });
    await world.createAttachment("va1");
    await world.advance(60_000);

    // 1, 2, 4, 8, 16 and 32 s apart.
    expect(world.driver.publishes.length).toBeLessThanOrEqual(7);
  });

  test("goes away with the attachment: what was published is unpublished", async () => {
    const world = await attaching({ blob: "x".repeat(300_000) });
    await world.createAttachment("va1");
    await world.settle();
    await world.deleteAttachment("va1");
    await world.advance(5_000);

    expect(world.driver.publishedOn("vol-pv1")).toEqual([]);
    expect(await world.attachment("va1")).toBeUndefined();
  });
});

describe("any answer to the status of an attach", () => {
  for (const [status, told] of [
    [400, true],
    [403, true],
    [405, true],
    [406, true],
    [413, true],
    [415, true],
    [422, true],
    [401, false],
    [409, false],
    [410, false],
    [429, false],
    [500, false],
    [503, false],
    [504, false],
  ] as const)
    test(`${status}: ${told ? "told" : "not told"}, and attached once it is taken`, async () => {
      const world = await attaching();
      // 429 is tried again by the client, an Invalid twice more by the pass.
      world.refuse("attached va1", status, 3);

      await world.createAttachment("va1");
      await world.settle();
      expect((await errorOf(world)) !== "", `attachError: ${await errorOf(world)}`).toBe(told);

      await world.advance(60_000);
      expect((await world.attachment("va1"))?.status).toEqual({ attached: true });
    });
});

function many(entries: number): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Array.from({ length: entries }, (_, index) => [`key-${index}`, "x".repeat(1_000)]),
  );
}
