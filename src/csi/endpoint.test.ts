import { expect, test } from "vitest";
import { parseEndpoint } from "./endpoint.ts";

for (const [endpoint, path] of [
  ["unix:///csi/csi.sock", "/csi/csi.sock"],
  ["unix:/csi/csi.sock", "/csi/csi.sock"],
  ["UNIX:///csi/csi.sock", "/csi/csi.sock"],
  ["/csi/csi.sock", "/csi/csi.sock"],
  [`/${"x".repeat(106)}`, `/${"x".repeat(106)}`],
] as const) {
  test(`${endpoint} is a socket`, () => expect(parseEndpoint(endpoint)).toBe(path));
}

for (const [endpoint, why] of [
  ["", "not an absolute path"],
  ["csi.sock", "not an absolute path"],
  ["unix://csi.sock", "not an absolute path"],
  ["tcp://127.0.0.1:1", "not an absolute path"],
  ["/csi/", "a directory"],
  ["/a\0b", "NUL"],
  [`/${"x".repeat(107)}`, "107"],
] as const) {
  test(`${JSON.stringify(endpoint.slice(0, 30))} is none`, () => {
    expect(() => parseEndpoint(endpoint)).toThrow(new RegExp(why));
  });
}
