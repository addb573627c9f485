import { expect, test } from "vitest";
import { mayMultiAttach } from "./access.ts";
import type { VolumeSpec } from "./spec.ts";
import { translate } from "./translation/translate.ts";

const persistent = (accessModes: unknown): VolumeSpec =>
  ({
    kind: "persistent",
    volume: { metadata: { name: "pv" }, spec: { accessModes } },
    readOnly: false,
    migrated: "none",
  }) as VolumeSpec;

const inline = (source: object) => ({ kind: "inline", volume: { name: "v", ...source } }) as VolumeSpec;

for (const [accessModes, allowed] of [
  [["ReadWriteOnce"], false],
  [["ReadWriteOncePod"], false],
  [["ReadWriteOnce", "ReadWriteOncePod"], false],
  [["ReadOnlyMany"], true],
  [["ReadWriteMany"], true],
  [["ReadWriteOnce", "ReadOnlyMany"], true],
  [["ModeOfTheFuture"], false],
  [[], true],
  [undefined, true],
  [null, true],
  ["ReadWriteMany", false], // no list: unsure means no
  [7, false],
] as const) {
  test(`a volume of ${JSON.stringify(accessModes)} may ${allowed ? "" : "not "}be on several nodes`, () => {
    expect(mayMultiAttach(persistent(accessModes))).toBe(allowed);
  });
}

test("a volume without a spec promises nothing, and is allowed", () => {
  const spec = { ...persistent([]), volume: { metadata: { name: "pv" } } } as VolumeSpec;

  expect(mayMultiAttach(spec)).toBe(true);
});

for (const [source, allowed] of [
  [{ azureDisk: { diskURI: "d", diskName: "d" } }, false],
  [{ cinder: { volumeID: "v" } }, false],
  [{ iscsi: { iqn: "iqn.2025-01.example:1", lun: 0, targetPortal: "10.0.0.9" } }, true],
  [{ fc: { wwids: ["1"] } }, true],
  [{ flexVolume: { driver: "example.com/flex" } }, true],
] as const) {
  test(`an inline ${Object.keys(source)[0] ?? ""} may ${allowed ? "" : "not "}be on several nodes`, () => {
    expect(mayMultiAttach(inline(source))).toBe(allowed);
  });
}

for (const [source, allowed] of [
  [{ awsElasticBlockStore: { volumeID: "vol-1" } }, false],
  [{ gcePersistentDisk: { pdName: "d", readOnly: true } }, true],
  [{ azureFile: { shareName: "s", secretName: "k" } }, true],
] as const) {
  test(`an inline ${Object.keys(source)[0] ?? ""} is judged by the modes of its translation`, () => {
    const translation = translate(inline(source));

    expect(translation.kind === "translated" && mayMultiAttach(translation.spec)).toBe(allowed);
  });
}
