import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  csiVolumeName,
  splitCsiVolume,
  splitVolumeName,
  toVolumeName,
  volumeAttachmentName,
} from "./names.ts";

describe("names of attachments", () => {
  for (const [volumeHandle, driver, node, name] of [
    [
      "vol-0123456789abcdef0",
      "ebs.csi.aws.com",
      "ip-10-0-1-23.ec2.internal",
      "csi-880af19cc88681d68f80a4a11ffa3d31efb3ee865ea742d7701040e168882925",
    ],
    [
      "testvol-01",
      "testdriver-01",
      "testnode-01",
      "csi-4d8f42c5f953488d695504cfaf9658961d83f72b5ac9bba3e32c2ddb7708e84f",
    ],
  ] as const) {
    test(`${volumeHandle} on ${node} is the one everybody else computes`, () => {
      expect(volumeAttachmentName({ driver, volumeHandle }, node)).toBe(name);
    });
  }

  test("are hashed as UTF-8, as Go strings are", () => {
    expect(volumeAttachmentName({ driver: "d", volumeHandle: "ü" }, "n")).toBe(
      "csi-dd106c9c1cb3de7d680cc0c271bc5bef4e2aa7b598800b5ad44cf6f165119e3a",
    );
  });

  test("have no separators, so that two volumes can share one: whoever adopts an attachment compares", () => {
    const one = volumeAttachmentName({ driver: "driver1", volumeHandle: "abc" }, "n");
    const other = volumeAttachmentName({ driver: "cdriver1", volumeHandle: "ab" }, "n");

    expect(one).toBe(other);
  });
});

describe("names of volumes", () => {
  for (const [name, plugin, pluginVolume] of [
    ["kubernetes.io/csi/ebs.csi.aws.com^vol-1", "kubernetes.io/csi", "ebs.csi.aws.com^vol-1"],
    ["kubernetes.io/csi/pd^projects/p/zones/z/disks/d", "kubernetes.io/csi", "pd^projects/p/zones/z/disks/d"],
    ["kubernetes.io/fc/[50060e801049cfd1]:0", "kubernetes.io/fc", "[50060e801049cfd1]:0"],
    ["vendor/driver/data", "vendor/driver", "data"],
    ["a/b/", "a/b", ""],
  ] as const) {
    test(`${name} is ${pluginVolume} of ${plugin}`, () => {
      expect(splitVolumeName(name)).toEqual({ plugin, pluginVolume });
      expect(toVolumeName(plugin, pluginVolume)).toBe(name);
    });
  }

  for (const name of ["", "disk", "kubernetes.io/csi"]) {
    test(`"${name}" is none`, () => expect(splitVolumeName(name)).toBeUndefined());
  }

  for (const [pluginVolume, parts] of [
    ["ebs.csi.aws.com^vol-1", { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" }],
    ["d^a^b", { driver: "d", volumeHandle: "a^b" }], // upstream could never detach it
    ["d^^", { driver: "d", volumeHandle: "^" }],
    ["d^", undefined],
    ["^handle", undefined],
    ["no-caret", undefined],
    ["", undefined],
  ] as const) {
    test(`"${pluginVolume}" splits into ${JSON.stringify(parts)}`, () => {
      expect(splitCsiVolume(pluginVolume)).toEqual(parts);
    });
  }

  test("whatever the handle, driver and handle are found again in the volume's name", () => {
    const driver = fc.stringMatching(/^[a-z0-9][a-z0-9.-]*$/);
    const handle = fc.string({ minLength: 1, unit: "grapheme" });
    fc.assert(
      fc.property(driver, handle, (driver, volumeHandle) => {
        const parts = splitVolumeName(csiVolumeName({ driver, volumeHandle }));

        expect(splitCsiVolume(parts?.pluginVolume ?? "")).toEqual({ driver, volumeHandle });
      }),
    );
  });
});
