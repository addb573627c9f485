import { expect, test } from "vitest";
import { toAccessMode } from "./access-modes.ts";

const [RWO, ROX, RWX, RWOP] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"] as const;

for (const [modes, plain, withMultiWriter] of [
  [[RWOP], "SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER"],
  [[RWOP, RWO], "error", "error"],
  [[RWOP, RWX], "error", "error"],
  [[RWX], "MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"],
  [[RWX, ROX, RWO], "MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"],
  [[ROX, RWO], "error", "error"],
  [[ROX], "MULTI_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY"],
  [[RWO], "SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"],
  [[RWO, RWO], "SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"],
  [[], "error", "error"],
  [["Sometimes"], "error", "error"],
] as const) {
  test(`34, 35: [${modes.join(", ")}] is ${plain}, or ${withMultiWriter} for a driver that tells writers apart`, () => {
    const modeWith = (singleNodeMultiWriter: boolean) => {
      try {
        return toAccessMode(modes, { singleNodeMultiWriter });
      } catch {
        return "error";
      }
    };

    expect([modeWith(false), modeWith(true)]).toEqual([plain, withMultiWriter]);
  });
}
