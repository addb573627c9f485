import { expect, test } from "vitest";
import { parseMountInfo } from "./linux-host.ts";

test("the mount table: escapes, optional fields, and read-only of the mount or of the filesystem", () => {
  const text = [
    "36 35 7:3 / /mnt/a\\040b rw,noatime shared:1 master:2 - ext4 /dev/loop3 rw,errors=remount-ro",
    "37 35 7:3 / /mnt/ro ro - ext4 /dev/loop3 rw",
    "38 35 7:4 / /mnt/broken rw - ext4 /dev/loop4 ro",
    "39 35 0:6 /loop3 /mnt/block rw,nosuid shared:9 - devtmpfs udev rw",
    "",
  ].join("\n");

  expect(parseMountInfo(text)).toEqual([
    { path: "/mnt/a b", root: "/", deviceNumber: "7:3", readonly: false, filesystemReadonly: false },
    { path: "/mnt/ro", root: "/", deviceNumber: "7:3", readonly: true, filesystemReadonly: false },
    { path: "/mnt/broken", root: "/", deviceNumber: "7:4", readonly: false, filesystemReadonly: true },
    { path: "/mnt/block", root: "/loop3", deviceNumber: "0:6", readonly: false, filesystemReadonly: false },
  ]);
});

for (const [options, failure] of [
  ["rw,emergency_ro", "emergency_ro"],
  ["ro,emergency_ro,errors=remount-ro", "emergency_ro"],
  ["rw,shutdown,stripe=4", "shutdown"],
  ["rw,errors=remount-ro", undefined],
  ["ro", undefined],
  // Words that only hold one of them.
  ["rw,no_emergency_ro,x=shutdown", undefined],
] as const) {
  test(`a filesystem that shows ${options} ${failure === undefined ? "has not failed" : `has failed: ${failure}`}`, () => {
    const [mount] = parseMountInfo(`36 35 7:3 / /mnt rw - ext4 /dev/loop3 ${options}\n`);

    expect(mount?.failure).toBe(failure);
  });
}
