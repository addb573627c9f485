import { describe, expect, test } from "vitest";
import { intendedList, statusDiffers, statusPatch } from "./node-status.ts";
import { placementWith, VOLUME, type NodeSketch } from "./stage.testing.ts";
import { World, type Hold } from "./world.ts";

describe("volumesAttached is a projection of what is held", () => {
  const ROWS: readonly (readonly [on: NodeSketch, held: Partial<Hold>, named: boolean, differs: boolean])[] =
    [
      [{ lists: false }, { listed: true }, true, true],
      [{ lists: true }, { listed: true }, true, false],
      [{ lists: true }, { listed: false }, false, true],
      [{ lists: false }, { listed: false }, false, false],
      [{ lists: true }, { listed: true, devicePath: "/dev/sdb" }, true, true], // the path is part of it
      [{ lists: true }, { listed: true, proven: false }, true, false], // found so at the start: it stays
      [{ lists: false }, { listed: true, proven: false }, false, false], // but nothing unproven is put onto a list
      [{ lists: false, managed: false }, { listed: true }, true, false], // not ours to write
      [{ lists: false, exists: false }, { listed: true }, true, false],
    ];
  for (const [on, held, named, differs] of ROWS)
    test(`${JSON.stringify({ on, held })}: ${named ? "named" : "not named"}, ${differs ? "to be written" : "nothing to write"}`, () => {
      const { node } = placementWith(new World(), { on, wanted: true, held });

      expect(intendedList(node).map(({ name }) => name)).toEqual(named ? [VOLUME] : []);
      expect(statusDiffers(node)).toBe(differs);
    });

  test("a write whose answer never came is written again, even if it seems right", () => {
    const { node } = placementWith(new World(), {
      on: { lists: true },
      wanted: true,
      held: { listed: true },
    });
    node.unconfirmed = new Set([VOLUME]);

    expect(statusDiffers(node)).toBe(true);
  });

  test("the list is replaced as a whole, and removed by null", () => {
    const item = { name: VOLUME, devicePath: "" };

    const metadata = { resourceVersion: "7" };
    expect(statusPatch([item], "7")).toEqual({
      type: "strategic",
      value: { metadata, status: { volumesAttached: [item] } },
    });
    expect(statusPatch([], "7")).toEqual({
      type: "strategic",
      value: { metadata, status: { volumesAttached: null } },
    });
  });
});
