import { expect, test } from "vitest";
import { createMountTable, mountContaining, parseMountInfo } from "./mount-table.ts";

const TEXT = [
  "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard",
  "36 22 7:3 / /mnt/a\\040b\\011c\\134d rw,noatime shared:4 master:2 - ext4 /dev/loop3 rw,errors=remount-ro",
  "37 22 7:3 /sub /mnt/ro ro - ext4 /dev/loop3 rw",
  "38 22 7:4 / /mnt/broken rw - ext4 /dev/loop4 ro",
  "39 22 0:40 / /mnt/nfs rw master:7 propagate_from:2 - nfs4 server:/a\\040b rw,addr=::1",
  "40 22 0:41 / /mnt/nfs/over rw - tmpfs tmpfs rw,size=1024k",
  "41 22 7:3 /sub /mnt/ro rw - ext4 /dev/loop3 rw",
  "a line that is none",
  "",
].join("\n");

test("escapes are undone, optional fields are skipped, and a mount is writable only if its filesystem is too", () => {
  const points = parseMountInfo(TEXT);

  expect(points.map(({ path, options, shared }) => [path, options, shared])).toEqual([
    ["/", ["rw", "relatime", "discard"], true],
    ["/mnt/a b\tc\\d", ["rw", "noatime", "errors=remount-ro"], true],
    ["/mnt/ro", ["ro"], false],
    ["/mnt/broken", ["ro"], false],
    ["/mnt/nfs", ["rw", "addr=::1"], false],
    ["/mnt/nfs/over", ["rw", "size=1024k"], false],
    ["/mnt/ro", ["rw"], false],
  ]);
  expect(points[4]).toMatchObject({ type: "nfs4", source: "server:/a b", deviceNumber: "0:40", root: "/" });
});

test("of two mounts at one path the later is the one that counts", () => {
  const table = createMountTable(parseMountInfo(TEXT));

  expect(table.at("/mnt/ro")?.options).toEqual(["rw"]);
  expect(table.at("/mnt")).toBeUndefined();
});

test("below a path means its own and deeper ones, not those whose name begins alike", () => {
  const table = createMountTable(parseMountInfo(TEXT));

  expect(table.below("/mnt/nfs").map(({ path }) => path)).toEqual(["/mnt/nfs", "/mnt/nfs/over"]);
  expect(table.below("/mnt/nf")).toEqual([]);
  expect(table.below("/")).toHaveLength(7);
});

test("references are other paths of the same part of the same filesystem", () => {
  const table = createMountTable([
    ...parseMountInfo(TEXT),
    ...parseMountInfo(
      "50 22 7:3 /sub /pods/1 rw - ext4 /dev/loop3 rw\n51 22 7:3 /other /pods/2 rw - ext4 /dev/loop3 rw",
    ),
  ]);

  expect(table.references("/mnt/ro")).toEqual(["/pods/1"]);
  expect(table.references("/mnt/nfs")).toEqual([]);
  expect(table.references("/nowhere")).toEqual([]);
});

test("the mount a path lies on is the deepest above it", () => {
  const points = parseMountInfo(TEXT);

  expect(mountContaining(points, "/mnt/nfs/over/x")?.type).toBe("tmpfs");
  expect(mountContaining(points, "/mnt/nfs/overt")?.type).toBe("nfs4");
  expect(mountContaining(points, "/mnt/ro")?.options).toEqual(["rw"]);
  expect(mountContaining(points, "/etc")?.path).toBe("/");
});
