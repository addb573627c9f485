import { expect, test } from "vitest";
import { claim, OURS, ref, storageClass, volume } from "../objects.testing.ts";
import { planResize, type ResizeView } from "./plan.ts";

type Sizes = readonly [requested: string, recorded: string, allocated: string, state: string];

function view([requested, recorded, allocated, state]: Sizes, capacity: string): ResizeView {
  const books = {
    ...(allocated !== "" && { allocatedResources: { storage: allocated } }),
    ...(state !== "" && { allocatedResourceStatuses: { storage: state } }),
  };
  return {
    claim: claim({
      spec: { volumeName: "v", resources: { requests: { storage: requested } } },
      status: { phase: "Bound", capacity: { storage: recorded }, ...books },
    }),
    volume: volume({
      spec: { claimRef: ref(), capacity: { storage: capacity } },
      status: { phase: "Bound" },
    }),
    storageClass: storageClass(),
    driver: OURS,
  };
}

const MIB = 1_048_576n;

for (const [name, sizes, capacity, expected] of [
  ["as large as asked", ["1Mi", "1Mi", "", ""], "1Mi", "nothing"],
  ["larger than asked", ["1Mi", "2Mi", "", ""], "2Mi", "nothing"],
  ["new wish", ["2Mi", "1Mi", "", ""], "1Mi", "begin 2"],
  ["begun", ["2Mi", "1Mi", "2Mi", "ControllerResizeInProgress"], "1Mi", "go on 2"],
  // The driver may be at the larger size already: that is finished first.
  ["begun, then less", ["2Mi", "1Mi", "4Mi", "ControllerResizeInProgress"], "1Mi", "go on 4"],
  ["begun, then more", ["8Mi", "1Mi", "4Mi", "ControllerResizeInProgress"], "1Mi", "begin 8"],
  ["grown, books not written", ["2Mi", "1Mi", "2Mi", "ControllerResizeInProgress"], "2Mi", "go on 2"],
  ["the node's turn", ["2Mi", "1Mi", "2Mi", "NodeResizePending"], "2Mi", "node-resize"],
  ["the node at work", ["2Mi", "1Mi", "2Mi", "NodeResizeInProgress"], "2Mi", "node-resize"],
  ["the node's turn, then more", ["4Mi", "1Mi", "2Mi", "NodeResizePending"], "2Mi", "begin 4"],
  ["infeasible", ["4Mi", "1Mi", "4Mi", "ControllerResizeInfeasible"], "1Mi", "go on 4"],
  ["infeasible, then less", ["2Mi", "1Mi", "4Mi", "ControllerResizeInfeasible"], "1Mi", "begin 2"],
] as const) {
  test(`${name}: ${expected}`, () => {
    const { expand, waitingFor } = planResize(view(sizes, capacity));

    const verdict = expand && `${expand.begin ? "begin" : "go on"} ${expand.bytes / MIB}`;
    expect(verdict ?? waitingFor?.reason ?? "nothing").toBe(expected);
  });
}

test("only a pair that is bound, of our driver, of a class that allows it, grows", () => {
  const grows = view(["2Mi", "1Mi", "", ""], "1Mi");
  const verdict = (members: Partial<ResizeView>) => planResize({ ...grows, ...members });

  expect(verdict({}).expand).toBeDefined();
  expect(verdict({ volume: undefined })).toEqual({});
  expect(verdict({ driver: "x" })).toEqual({});
  expect(verdict({ volume: volume() })).toEqual({});
  expect(verdict({ claim: { ...grows.claim, status: { phase: "Pending" } } })).toEqual({});
  const metadata = { ...grows.claim.metadata, deletionTimestamp: "now" };
  expect(verdict({ claim: { ...grows.claim, metadata } })).toEqual({});
  expect(verdict({ storageClass: storageClass({ allowVolumeExpansion: false }) }).waitingFor?.reason).toBe(
    "class-forbids",
  );
  expect(verdict({ storageClass: undefined }).waitingFor?.reason).toBe("class-missing");
});
