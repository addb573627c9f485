import { describe, expect, test } from "vitest";
import { addFinalizerPatch, finalizersWithout, hasFinalizer, removeFinalizerPatch } from "./finalizers.ts";
import type { KubeObject } from "./object.ts";
import { applyJsonPatch } from "./patch/json-patch.ts";

const OURS = "mooring.io/attached";

function object(finalizers?: string[], uid = "u1"): KubeObject {
  return { metadata: { name: "a", uid, ...(finalizers === undefined ? {} : { finalizers }) } };
}

/** What the patch computed from `seen` does to the object the server has. */
function patched(
  build: typeof addFinalizerPatch,
  seen: KubeObject,
  stored: KubeObject,
): readonly string[] | undefined {
  const result = applyJsonPatch(stored, build(seen, OURS)) as unknown as KubeObject;
  return result.metadata.finalizers;
}

test("a finalizer is there or it is not", () => {
  expect(hasFinalizer(object(["x", OURS]), OURS)).toBe(true);
  expect(hasFinalizer(object(["x"]), OURS)).toBe(false);
  expect(hasFinalizer(object(), OURS)).toBe(false);
  expect(finalizersWithout(object(["x", OURS, "y"]), OURS)).toEqual(["x", "y"]);
});

describe("adding", () => {
  test("puts it behind those of others", () => {
    expect(patched(addFinalizerPatch, object(["x"]), object(["x"]))).toEqual(["x", OURS]);
    expect(patched(addFinalizerPatch, object(), object())).toEqual([OURS]);
    expect(patched(addFinalizerPatch, object([]), object())).toEqual([OURS]);
  });

  test("takes no patch where it is already", () => {
    expect(addFinalizerPatch(object([OURS]), OURS)).toBeUndefined();
  });

  for (const [story, seen, stored] of [
    ["another finalizer came first", object(), object(["x"])],
    ["another finalizer went", object(["x"]), object()],
    ["ours was added by a second replica", object(["x"]), object(["x", OURS])],
    ["the object was deleted and created anew", object(["x"]), object(["x"], "u2")],
  ] as const) {
    test(`is refused if meanwhile ${story}`, () => {
      expect(() => patched(addFinalizerPatch, seen, stored)).toThrow("Invalid");
    });
  }
});

describe("removing", () => {
  test("takes ours and leaves the others", () => {
    expect(patched(removeFinalizerPatch, object(["x", OURS, "y"]), object(["x", OURS, "y"]))).toEqual([
      "x",
      "y",
    ]);
    expect(patched(removeFinalizerPatch, object([OURS, "x", OURS]), object([OURS, "x", OURS]))).toEqual([
      "x",
    ]);
  });

  test("does not mind one that was added behind it, and keeps it", () => {
    expect(patched(removeFinalizerPatch, object([OURS]), object([OURS, "new"]))).toEqual(["new"]);
  });

  test("takes no patch where it is gone", () => {
    expect(removeFinalizerPatch(object(["x"]), OURS)).toBeUndefined();
  });

  for (const [story, seen, stored] of [
    ["one before it went", object(["x", OURS, "y"]), object([OURS, "y"])],
    ["ours went and another took its place", object([OURS, "y"]), object(["y"])],
    ["the last one went", object([OURS]), object()],
    ["the object was deleted and created anew", object([OURS]), object([OURS], "u2")],
  ] as const) {
    test(`is refused if meanwhile ${story}`, () => {
      expect(() => patched(removeFinalizerPatch, seen, stored)).toThrow("Invalid");
    });
  }
});
