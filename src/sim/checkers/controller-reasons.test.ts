import { expect, test } from "vitest";
import type { ReportedWait } from "../reported-waits.ts";
import type { World } from "../world.ts";
import { volumeAttachmentName } from "../../volumes/names.ts";
import { CONTROLLER_JUDGES } from "./controller-reasons.ts";
import { Facts } from "./facts.ts";

const NAME = volumeAttachmentName({ driver: "san", volumeHandle: "d14" }, "node-2");

interface Sketch {
  readonly name?: string;
  readonly record?: string;
  readonly pv?: string;
  readonly node: string;
}

/** What is untrue of a controller that says of d14 that node-2 has it, with one VolumeAttachment, on `node`. */
function judge({ name = "by-hand", record, pv, node }: Sketch): string | undefined {
  const annotations = { ...(record !== undefined && { "mooring.dev/volume-handle": record }) };
  const attachment = {
    metadata: { name, annotations },
    spec: { nodeName: node, attacher: "san", source: { persistentVolumeName: "pv-1" } },
  };
  const objects = {
    all: () => [attachment],
    get: (kind: string) =>
      kind === "persistentvolumes" && pv !== undefined ? { spec: { csi: { volumeHandle: pv } } } : undefined,
  };
  const world = {
    objects,
    storages: { volumes: new Map([["d14", { driver: "san" }]]) },
    nodes: new Map(),
  } as unknown as World;
  const object = { kind: "Node", name: "node-2" };
  const wait = { object, handle: "d14", node: "node-1", message: "" } as unknown as ReportedWait;
  return CONTROLLER_JUDGES["held-by-other-node"](wait, new Facts(world));
}

test("another node has a disk by what an attachment there is named for, names or has recorded, or by one of which nobody can tell", () => {
  expect(judge({ record: "d14", node: "node-2" })).toBeUndefined();
  expect(judge({ record: "d11", pv: "d14", node: "node-2" })).toBeUndefined();
  expect(judge({ node: "node-2" })).toBeUndefined();
  expect(judge({ name: NAME, pv: "d11", node: "node-2" })).toBeUndefined();
});

test("and has none by an attachment of another disk or node", () => {
  const untrue = "node-2 has neither a VolumeAttachment of the volume nor the volume";

  expect(judge({ name: NAME, pv: "d11", node: "node-3" })).toBe(untrue);
  expect(judge({ record: "d11", pv: "d11", node: "node-2" })).toBe(untrue);
  expect(judge({ record: "d11", node: "node-2" })).toBe(untrue);
  expect(judge({ record: "d14", pv: "d14", node: "node-3" })).toBe(untrue);
});
