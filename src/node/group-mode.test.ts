import { expect, test } from "vitest";
import { groupMode, hasGroup } from "./group-mode.ts";

for (const [kind, mode, readOnly, wanted] of [
  ["file", 0o600, false, 0o660],
  ["file", 0o4711, false, 0o4771],
  ["file", 0o400, true, 0o440],
  ["directory", 0o700, false, 0o2770],
  ["directory", 0o500, true, 0o2550],
  ["socket", 0o755, false, 0o775],
  ["symlink", 0o777, false, 0o777], // has no mode of its own
] as const)
  test(`${kind} ${mode.toString(8)} ${readOnly ? "read-only" : "writable"} becomes ${wanted.toString(8)}`, () => {
    expect(groupMode({ kind, mode }, { readOnly })).toBe(wanted);
  });

for (const [kind, gid, mode, readOnly, verdict] of [
  ["directory", 3000, 0o2770, false, true],
  ["directory", 3000, 0o2775, false, true],
  ["directory", 3000, 0o770, false, false], // scenario 130: without setgid
  ["directory", 3000, 0o2750, false, false],
  ["directory", 3000, 0o2750, true, true],
  ["directory", 3001, 0o2770, false, false],
  ["file", 3000, 0o2770, false, false],
] as const)
  test(`${kind} of group ${gid} with ${mode.toString(8)} ${readOnly ? "read-only " : ""}${verdict ? "has" : "lacks"} group 3000`, () => {
    expect(hasGroup({ kind, mode, gid }, { gid: 3000, readOnly })).toBe(verdict);
  });
