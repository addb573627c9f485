import { expect, test } from "vitest";
import { csiSourceOf, isMigrated, specName, type PersistentSpec, type VolumeSpec } from "./spec.ts";

const persistent = (spec: object, overrides: Partial<PersistentSpec> = {}): VolumeSpec => ({
  kind: "persistent",
  volume: { metadata: { name: "pv-1" }, spec },
  readOnly: false,
  migrated: "none",
  ...overrides,
});

const ephemeralCsi: VolumeSpec = {
  kind: "inline",
  volume: { name: "scratch", csi: { driver: "csi.example.com" } },
};

test("people call a volume by its name in the pod, or by that of its PersistentVolume", () => {
  expect(specName(ephemeralCsi)).toBe("scratch");
  expect(specName(persistent({}))).toBe("pv-1");
  expect(specName(persistent({}, { volume: { metadata: {} } }))).toBe("");
});

for (const [csi, found] of [
  [{ driver: "csi.example.com", volumeHandle: "v" }, true],
  [{ driver: "csi.example.com", volumeHandle: "" }, false],
  [{ driver: "", volumeHandle: "v" }, false],
  [{ driver: 7, volumeHandle: ["v"] }, false],
  ["csi.example.com", false],
  [null, false],
  [undefined, false],
] as const) {
  test(`a PersistentVolume with csi ${JSON.stringify(csi)} ${found ? "has" : "has no"} CSI source`, () => {
    expect(csiSourceOf(persistent({ csi }))).toEqual(found ? csi : undefined);
  });
}

test("an inline csi volume has no source that could be attached", () => {
  expect(csiSourceOf(ephemeralCsi)).toBeUndefined();
});

test("what came out of translation is told from what the API says", () => {
  expect(isMigrated(persistent({}))).toBe(false);
  expect(isMigrated(ephemeralCsi)).toBe(false);
  expect(isMigrated(persistent({}, { migrated: "volume" }))).toBe(true);
  expect(isMigrated(persistent({}, { migrated: "inline" }))).toBe(true);
});
