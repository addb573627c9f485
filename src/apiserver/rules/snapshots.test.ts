import { describe, expect, test } from "vitest";
import type { ApiObject } from "../objects.ts";
import { changing, creating, given, kindOf, stored } from "./given.testing.ts";
import { rulesFor } from "./rules.ts";

const UNCHECKED = "Invalid <nil>";

describe("a VolumeSnapshot", () => {
  for (const [what, members, causes] of [
    ["of a claim", { spec: { source: { persistentVolumeClaimName: "c" } } }, []],
    ["of what exists", { spec: { source: { volumeSnapshotContentName: "c" } } }, []],
    ["of nothing at all", {}, ["Required spec", UNCHECKED]],
    ["without a source", { spec: {} }, ["Required spec.source", UNCHECKED]],
    ["of an empty source", { spec: { source: {} } }, ["Invalid spec.source"]],
    [
      "of both",
      { spec: { source: { persistentVolumeClaimName: "c", volumeSnapshotContentName: "d" } } },
      ["Invalid spec.source"],
    ],
    [
      "of no class",
      { spec: { source: { persistentVolumeClaimName: "c" }, volumeSnapshotClassName: "" } },
      ["Invalid spec.volumeSnapshotClassName"],
    ],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(creating("VolumeSnapshot", members)).toEqual(causes);
    });
  }

  const old = stored("VolumeSnapshot", { spec: { source: { persistentVolumeClaimName: "c" } } });
  for (const [what, source, causes] of [
    ["the same", { persistentVolumeClaimName: "c" }, []],
    [
      "of another claim",
      { persistentVolumeClaimName: "d" },
      ["Invalid spec.source.persistentVolumeClaimName"],
    ],
    ["of something else", { volumeSnapshotContentName: "d" }, ["Invalid spec.source"]],
  ] as const) {
    test(`changed to be ${what}: ${causes.join() || "good"}`, () => {
      expect(changing("VolumeSnapshot", old, { ...old, spec: { source } })).toEqual(causes);
    });
  }

  test("may change its class, and its status says a size that is one", () => {
    const spec = { source: { persistentVolumeClaimName: "c" }, volumeSnapshotClassName: "fast" };

    expect(changing("VolumeSnapshot", old, { ...old, spec })).toEqual([]);
    expect(sizing("VolumeSnapshot", old, "1Gi")).toEqual([]);
    expect(sizing("VolumeSnapshot", old, "big")).toEqual(["status.restoreSize"]);
  });
});

describe("a VolumeSnapshotContent", () => {
  const spec = {
    deletionPolicy: "Delete",
    driver: "d.io",
    source: { volumeHandle: "v" },
    sourceVolumeMode: "Block",
    volumeSnapshotRef: { name: "s", namespace: "t" },
  };

  for (const [what, wanted, causes] of [
    ["complete", spec, []],
    [
      "empty",
      {},
      [
        "Required spec.deletionPolicy",
        "Required spec.driver",
        "Required spec.source",
        "Required spec.volumeSnapshotRef",
        UNCHECKED,
      ],
    ],
    [
      "with a policy of its own",
      { ...spec, deletionPolicy: "Keep", source: {} },
      ["NotSupported spec.deletionPolicy", UNCHECKED],
    ],
    ["of nothing", { ...spec, source: {} }, ["Invalid spec.source"]],
    [
      "of two things",
      { ...spec, source: { volumeHandle: "v", snapshotHandle: "s" } },
      ["Invalid spec.source"],
    ],
    [
      "for a nameless snapshot",
      { ...spec, volumeSnapshotRef: { namespace: "t" } },
      ["Invalid spec.volumeSnapshotRef"],
    ],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(creating("VolumeSnapshotContent", { spec: wanted })).toEqual(causes);
    });
  }

  const old = stored("VolumeSnapshotContent", { spec });
  const { sourceVolumeMode: _mode, ...withoutMode } = spec;
  for (const [what, wanted, causes] of [
    ["kept after all", { ...spec, deletionPolicy: "Retain" }, []],
    ["bound by uid", { ...spec, volumeSnapshotRef: { ...spec.volumeSnapshotRef, uid: "u" } }, []],
    ["of another volume", { ...spec, source: { volumeHandle: "w" } }, ["Invalid spec.source.volumeHandle"]],
    ["of another kind of source", { ...spec, source: { snapshotHandle: "s" } }, ["Invalid spec.source"]],
    ["of files", { ...spec, sourceVolumeMode: "Filesystem" }, ["Invalid spec.sourceVolumeMode"]],
    ["of no mode", withoutMode, ["Invalid spec"]],
  ] as const) {
    test(`changed to be ${what}: ${causes.join() || "good"}`, () => {
      expect(changing("VolumeSnapshotContent", old, { ...old, spec: wanted })).toEqual(causes);
    });
  }

  test("is never smaller than nothing", () => {
    expect(sizing("VolumeSnapshotContent", old, 0)).toEqual([]);
    expect(sizing("VolumeSnapshotContent", old, -1)).toEqual(["status.restoreSize"]);
  });
});

describe("a VolumeSnapshotClass", () => {
  for (const [what, members, causes] of [
    ["complete", { driver: "d.io", deletionPolicy: "Retain" }, []],
    ["empty", {}, ["Required deletionPolicy", "Required driver"]],
    ["with a policy of its own", { driver: "d.io", deletionPolicy: "Keep" }, ["NotSupported deletionPolicy"]],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(creating("VolumeSnapshotClass", members)).toEqual(causes);
    });
  }
});

/** Fields that are wrong when its status says this size. */
function sizing(kind: string, old: ApiObject, restoreSize: unknown): string[] {
  const rules = rulesFor(kindOf(kind));
  const object = { ...given(kind), ...old, status: { restoreSize } };
  return rules.validateStatusUpdate(object, old).map(({ field }) => field);
}
