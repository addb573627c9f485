import { describe, expect, test } from "vitest";
import { Copies, type Content } from "./copies.ts";

function setUp() {
  const contents = new Map<string, Content>([["d1", { ...nothing(), wanted: ["d1 1", "d1 2"], synced: 2 }]]);
  const contentOf = (handle: string) => {
    const found = contents.get(handle) ?? nothing();
    contents.set(handle, found);
    return found;
  };
  return { copies: new Copies(contentOf), linesOf: (handle: string) => contentOf(handle).wanted };
}

const nothing = (): Content => ({ wanted: [], synced: 0, uncertain: [], cut: [] });

describe("a copy", () => {
  test("has all of what its source had before it was begun, and any of what was written until it was done", () => {
    for (const found of [
      ["d1 1", "d1 2"],
      ["d1 1", "d1 2", "d1 3"],
    ]) {
      const { copies, linesOf } = setUp();
      const done = copies.begin("d1", "d2");
      linesOf("d1").push("d1 3");
      done();

      expect(copies.open("d2", found)).toBeUndefined();
      expect(linesOf("d2")).toEqual(found);
      expect(copies.sourceOf("d2")).toBe("d1");
    }
  });

  test.each([
    { what: "lacks an acknowledged write", found: ["d1 1"], problem: /lacks 1 of 2/ },
    {
      what: "has a write from after it was done",
      found: ["d1 1", "d1 2", "d1 3"],
      problem: /did not have: d1 3/,
    },
    { what: "has what is of another volume", found: ["d1 1", "d9 1"], problem: /did not have: d9 1/ },
  ])("that $what is told", ({ found, problem }) => {
    const { copies, linesOf } = setUp();
    copies.begin("d1", "d2")();
    linesOf("d1").push("d1 3");

    expect(copies.open("d2", found)).toMatch(problem);
  });

  test("of a copy that nobody has opened is held to what that is held to, also once its source is gone", () => {
    const { copies } = setUp();
    copies.begin("d1", "s1")();
    copies.begin("s1", "d2")();
    copies.forget("d1");
    copies.forget("s1");

    expect(copies.open("d2", [])).toMatch(/lacks 2 of 2/);
    expect(copies.open("d2", ["d1 1", "d1 2"])).toBeUndefined();
  });

  test("is told when it is begun, and whether it is made at once", () => {
    const { copies } = setUp();
    const told: unknown[] = [];
    copies.onBegin((from, options) => told.push([from, options]));

    copies.begin("d1", "d2");
    copies.begin("d1", "d3", { atOnce: false });

    expect(told).toEqual([
      ["d1", { atOnce: true }],
      ["d1", { atOnce: false }],
    ]);
  });

  test("may have a part of a write that was not synced, and of no other", () => {
    const { copies, linesOf } = setUp();
    linesOf("d1").push("d1 3");
    copies.begin("d1", "d2")();
    copies.begin("d1", "d3")();

    expect(copies.open("d2", ["d1 1", "d1 2", "d"])).toBeUndefined();
    expect(linesOf("d2")).toEqual(["d1 1", "d1 2"]);
    expect(copies.open("d3", ["d1 1", "d1"])).toMatch(/lacks 1 of 2/);
  });
});
