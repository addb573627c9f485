import { expect, test } from "vitest";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { isReasonToLook } from "./event-filter.ts";

const error = (message: string) => ({ message, time: "2026-01-01T00:00:00Z" });

function attachment(resourceVersion: string, status: object = {}, metadata: object = {}): VolumeAttachment {
  return {
    metadata: { name: "va", resourceVersion, ...metadata },
    spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "pv" } },
    status: { attached: false, ...status },
  };
}

const managed = [{ manager: "x", time: "2026-01-01T00:00:00Z" }];

for (const [title, old, updated, look] of [
  ["62: the periodic resync", attachment("1"), attachment("1"), true],
  ["any change while there is no error", attachment("1"), attachment("2"), true],
  [
    "63: a spec beside an error",
    attachment("1", { attachError: error("a") }),
    {
      ...attachment("2", { attachError: error("a") }),
      spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "pv-2" } },
    },
    true,
  ],
  [
    "63: an annotation beside an error",
    attachment("1", { attachError: error("a") }),
    attachment("2", { attachError: error("a") }, { annotations: { a: "b" } }),
    true,
  ],
  ["64: an attachError that is new", attachment("1"), attachment("2", { attachError: error("a") }), false],
  [
    "64: an attachError that changed",
    attachment("1", { attachError: error("a") }),
    attachment("2", { attachError: error("b") }),
    false,
  ],
  ["64: a detachError that is new", attachment("1"), attachment("2", { detachError: error("a") }), false],
  [
    "64: a detachError that changed",
    attachment("1", { detachError: error("a") }),
    attachment("2", { detachError: error("b") }),
    false,
  ],
  [
    "64: managedFields that came with an error",
    attachment("1"),
    attachment("2", { attachError: error("a") }, { managedFields: managed }),
    false,
  ],
  [
    "64: managedFields alone, with an error",
    attachment("1", { attachError: error("a") }),
    attachment("2", { attachError: error("a") }, { managedFields: managed }),
    false,
  ],
  [
    "a deletion beside an error",
    attachment("1", { attachError: error("a") }),
    attachment("2", { attachError: error("a") }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    true,
  ],
  [
    "attached, beside an error",
    attachment("1", { attachError: error("a") }),
    attachment("2", { attached: true }),
    true,
  ],
] as const) {
  test(`${title} ${look ? "is worth a look" : "is not"}`, () => {
    expect(isReasonToLook(old, updated)).toBe(look);
  });
}
