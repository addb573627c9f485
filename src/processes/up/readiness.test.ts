import { expect, test } from "vitest";
import { readyAs } from "./readiness.ts";

const claim = (phase: string, wanted: string, has: string) => ({
  metadata: { name: "c" },
  spec: { volumeName: "pv-1", resources: { requests: { storage: wanted } } },
  status: { phase, capacity: { storage: has } },
});
const pod = (ready: string) => ({
  metadata: { name: "p" },
  spec: { nodeName: "node-1" },
  status: { conditions: [{ type: "Ready", status: ready }] },
});

const ROWS: readonly (readonly [string, object, string | undefined])[] = [
  ["Pod", pod("True"), "ready on node-1"],
  ["Pod", pod("False"), undefined],
  ["Pod", { metadata: {} }, undefined],
  ["PersistentVolumeClaim", claim("Bound", "64Mi", "64Mi"), "bound to pv-1, 64Mi"],
  ["PersistentVolumeClaim", claim("Bound", "65536Ki", "64Mi"), "bound to pv-1, 64Mi"],
  ["PersistentVolumeClaim", claim("Bound", "128Mi", "64Mi"), undefined],
  ["PersistentVolumeClaim", claim("Pending", "64Mi", ""), undefined],
  ["VolumeSnapshot", { status: { readyToUse: true, restoreSize: "64Mi" } }, "ready to use, 64Mi"],
  ["VolumeSnapshot", { status: { readyToUse: false } }, undefined],
  ["ConfigMap", {}, "made"],
];
for (const [kind, object, expected] of ROWS)
  test(`${kind} ${JSON.stringify(object)}: ${expected ?? "not yet"}`, () => {
    expect(readyAs(kind, { metadata: {}, ...object })).toBe(expected);
  });
