import { expect, test } from "vitest";
import type { ReportedWait } from "../reported-waits.ts";
import type { World } from "../world.ts";
import { CONTROLLER_JUDGES } from "./controller-reasons.ts";
import { Facts } from "./facts.ts";

/** A controller that says of d14 that node-2 has it, where one VolumeAttachment for PersistentVolume pv-1 is on `node`. */
function judge({ record, pv, node }: { record?: string; pv?: string; node: string }): string | undefined {
  const annotations = { ...(record !== undefined && { "mooring.dev/volume-handle": record }) };
  const attachment = {
    metadata: { name: "by-hand", annotations },
    spec: { nodeName: node, attacher: "san", source: { persistentVolumeName: "pv-1" } },
  };
  const objects = {
    all: () => [attachment],
    get: (kind: string) =>
      kind === "persistentvolumes" && pv !== undefined ? { spec: { csi: { volumeHandle: pv } } } : undefined,
  };
  const world = { objects, storages: { volumes: new Map() }, nodes: new Map() } as unknown as World;
  const object = { kind: "Node", name: "node-2" };
  const wait = { object, handle: "d14", node: "node-1", message: "" } as unknown as ReportedWait;
  return CONTROLLER_JUDGES["held-by-other-node"](wait, new Facts(world));
}

test("another node has a disk by what an attachment there names or has recorded, or by one of which nobody can tell", () => {
  expect(judge({ record: "d14", node: "node-2" })).toBeUndefined();
  expect(judge({ record: "d11", pv: "d14", node: "node-2" })).toBeUndefined();
  expect(judge({ node: "node-2" })).toBeUndefined();
});

test("and has none by an attachment of another disk or node", () => {
  const untrue = "node-2 has neither a VolumeAttachment of the volume nor the volume";

  expect(judge({ record: "d11", pv: "d11", node: "node-2" })).toBe(untrue);
  expect(judge({ record: "d11", node: "node-2" })).toBe(untrue);
  expect(judge({ record: "d14", pv: "d14", node: "node-3" })).toBe(untrue);
});
