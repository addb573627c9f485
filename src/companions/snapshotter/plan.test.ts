import { describe, expect, test } from "vitest";
import { claim, content, OURS, ref, snapshot, snapshotClass, volume } from "../objects.testing.ts";
import {
  BEING_CREATED,
  BEING_DELETED,
  CLAIM_SOURCE_FINALIZER,
  CONTENT_FINALIZER,
  DEFAULT_SNAPSHOT_CLASS,
  SNAPSHOT_BOUND_FINALIZER,
  SNAPSHOT_SOURCE_FINALIZER,
} from "./names.ts";
import { planContent, type ContentView } from "./plan-content.ts";
import { planSnapshot, type SnapshotView } from "./plan-snapshot.ts";
import { isBeingCut } from "./source-claim.ts";
import { snapshotStatus } from "./status.ts";

const HELD = { finalizers: [SNAPSHOT_SOURCE_FINALIZER, SNAPSHOT_BOUND_FINALIZER] };
const bound = claim({
  metadata: { finalizers: [CLAIM_SOURCE_FINALIZER] },
  spec: { volumeName: "v" },
  status: { phase: "Bound" },
});
const CLASSED = { volumeSnapshotClassName: "snap" };

function verdict(members: Partial<SnapshotView>): string {
  const { action, waitingFor, tell } = planSnapshot({
    snapshot: snapshot({ metadata: HELD, spec: CLASSED }),
    driver: OURS,
    content: undefined,
    confirmed: false,
    claim: bound,
    volume: volume({ spec: { claimRef: ref() } }),
    classes: [snapshotClass()],
    restores: 0,
    ...members,
  });
  return [action?.kind, waitingFor?.reason, tell?.reason].filter(Boolean).join(" ") || "nothing";
}

describe("a snapshot of a claim", () => {
  const foreign = volume({ spec: { csi: { driver: "x", volumeHandle: "h" } } });
  const isDefault = snapshotClass({
    metadata: { name: "snap", annotations: { [DEFAULT_SNAPSHOT_CLASS]: "true" } },
  });
  const rows: readonly (readonly [string, Partial<SnapshotView>, string])[] = [
    ["with everything there", {}, "create-content"],
    ["without its claim", { claim: undefined }, "claim-unbound SnapshotContentCreationFailed"],
    ["of a claim that is not bound", { claim: claim() }, "claim-unbound SnapshotContentCreationFailed"],
    ["of a volume of another driver", { volume: foreign }, "nothing"],
    ["of a class that is missing", { classes: [] }, "class-missing GetSnapshotClassFailed"],
    [
      "of a class of another driver",
      { classes: [snapshotClass({ driver: "x" })] },
      "class-missing SnapshotContentCreationFailed",
    ],
    ["without a class, one default", { snapshot: snapshot(), classes: [isDefault] }, "change"],
    ["without a class, no default", { snapshot: snapshot() }, "class-missing SetDefaultSnapshotClassFailed"],
    [
      "without a class, two defaults",
      { snapshot: snapshot(), classes: [isDefault, isDefault] },
      "class-missing SetDefaultSnapshotClassFailed",
    ],
    ["not held", { snapshot: snapshot({ spec: CLASSED }) }, "change"],
    ["its claim not held", { claim: { ...bound, metadata: { name: "data" } } }, "hold-claim"],
    ["with its content", { content: content() }, "status"],
    [
      "with somebody else's content",
      { content: content({ spec: { volumeSnapshotRef: { name: "s", namespace: "default", uid: "x" } } }) },
      "content-mismatch SnapshotContentMisbound",
    ],
  ];
  for (const [name, members, expected] of rows)
    test(`${name}: ${expected}`, () => expect(verdict(members)).toBe(expected));

  test("that has lost its content asks the server before it says so", () => {
    const status = { boundVolumeSnapshotContentName: "snapcontent-s1", readyToUse: true };
    const lost = snapshot({ metadata: HELD, spec: CLASSED, status });

    expect(verdict({ snapshot: lost })).toBe("confirm");
    expect(verdict({ snapshot: lost, confirmed: true })).toBe(
      "status content-missing SnapshotContentMissing",
    );
  });
});

describe("a snapshot that was made elsewhere", () => {
  const source = { volumeSnapshotContentName: "by-hand" };
  const by = (members: object = {}) =>
    content({
      spec: {
        source: { snapshotHandle: "x" },
        volumeSnapshotRef: { name: "s", namespace: "default" },
        ...members,
      },
    });
  const wants = { snapshot: snapshot({ metadata: HELD, spec: { source } }), confirmed: true };

  test("completes the reference of its content, then says what that says", () => {
    const complete = by({ volumeSnapshotRef: { name: "s", namespace: "default", uid: "s1" } });

    expect(verdict({ ...wants, content: by() })).toBe("change-content");
    expect(verdict({ ...wants, content: complete })).toBe("status");
  });

  test("is bound to nothing that is missing, another's, another driver's, or not made elsewhere", () => {
    const others = by({ volumeSnapshotRef: { name: "t", namespace: "default" } });

    expect(verdict(wants)).toBe("content-missing SnapshotContentMissing");
    expect(verdict({ ...wants, content: others })).toBe("content-mismatch SnapshotContentMisbound");
    expect(verdict({ ...wants, content: by({ driver: "x" }) })).toBe("nothing");
    expect(verdict({ ...wants, content: by({ source: { volumeHandle: "h" } }) })).toBe(
      "content-mismatch SnapshotContentMismatch",
    );
  });
});

describe("a snapshot that goes", () => {
  const going = snapshot({ metadata: { ...HELD, deletionTimestamp: "now" }, spec: CLASSED });
  const marked = { annotations: { [BEING_DELETED]: "yes" } };

  for (const [name, members, expected] of [
    ["while a volume is made from it", { restores: 1 }, "in-use"],
    ["before the server was asked", { confirmed: false }, "confirm"],
    ["without a content", {}, "change"],
    ["its content not told", { content: content() }, "change-content"],
    ["its content told", { content: content({ metadata: marked }) }, "delete-content"],
    [
      "its content going",
      { content: content({ metadata: { ...marked, deletionTimestamp: "now" } }) },
      "driver-cutting",
    ],
    [
      "its content retained",
      { content: content({ metadata: marked, spec: { deletionPolicy: "Retain" } }) },
      "change",
    ],
    ["its content another driver's", { content: content({ spec: { driver: "x" } }) }, "nothing"],
    ["not held", { snapshot: snapshot({ metadata: { deletionTimestamp: "now" } }) }, "nothing"],
  ] as const) {
    test(`${name}: ${expected}`, () => {
      expect(verdict({ snapshot: going, confirmed: true, ...members })).toBe(expected);
    });
  }
});

describe("a content", () => {
  const held = { finalizers: [CONTENT_FINALIZER] };
  const asked = { ...held, annotations: { [BEING_CREATED]: "yes" } };
  const gone = { deletionTimestamp: "now", annotations: { [BEING_DELETED]: "yes" } };
  const done = { snapshotHandle: "snap-1", readyToUse: true };
  const both = { [BEING_CREATED]: "yes", [BEING_DELETED]: "yes" };
  const step = (sketch: Parameters<typeof content>[0], members: Partial<ContentView> = {}) => {
    const of = {
      content: content(sketch),
      driver: OURS,
      snapshotClass: undefined,
      snapshot: "there",
    } as const;
    const { action, waitingFor } = planContent({ ...of, ...members });
    return action?.kind ?? waitingFor?.reason ?? "nothing";
  };

  for (const [name, sketch, expected] of [
    ["of another driver", { spec: { driver: "x" } }, "nothing"],
    ["not held", {}, "change"],
    ["the driver not asked", { metadata: held }, "change"],
    ["the driver asked", { metadata: asked }, "cut"],
    ["cut, not ready", { metadata: asked, status: { snapshotHandle: "snap-1", readyToUse: false } }, "cut"],
    ["cut, still marked", { metadata: asked, status: done }, "change"],
    ["cut", { metadata: held, status: done }, "nothing"],
    ["of a class that is gone", { metadata: held, spec: { volumeSnapshotClassName: "x" } }, "class-missing"],
    ["made elsewhere", { metadata: held, spec: { source: { snapshotHandle: "x" } } }, "look-up"],
    [
      "made elsewhere, known",
      { metadata: held, spec: { source: { snapshotHandle: "x" } }, status: done },
      "nothing",
    ],
    ["going under its snapshot", { metadata: { ...held, deletionTimestamp: "now" }, status: done }, "in-use"],
    ["going, cut", { metadata: { ...held, ...gone }, status: done }, "delete-snapshot"],
    [
      "going, retained",
      { metadata: { ...held, ...gone }, spec: { deletionPolicy: "Retain" }, status: done },
      "change",
    ],
    ["going, never asked for", { metadata: { ...held, ...gone } }, "change"],
    // What the driver did is not known: its answer alone names what is to be deleted.
    ["going, asked for", { metadata: { ...held, ...gone, annotations: both } }, "cut"],
    ["going, let go", { metadata: gone }, "nothing"],
  ] as const) {
    test(`${name}: ${expected}`, () => expect(step(sketch as Parameters<typeof content>[0])).toBe(expected));
  }

  const uncut = { metadata: held };
  const uncutGoing = { metadata: { ...held, deletionTimestamp: "now" } };
  const cutGoing = { ...uncutGoing, status: done };
  for (const [name, sketch, snapshot, expected] of [
    ["never cut", uncut, undefined, "confirm"],
    ["never cut, its snapshot going", uncut, "going", "in-use"],
    ["never cut, its snapshot gone", uncut, "gone", "discard"],
    ["perhaps cut, its snapshot gone", { metadata: asked }, "gone", "cut"],
    // As upstream: objects that were copied from another cluster never had their snapshot here.
    ["cut, its snapshot gone", { metadata: held, status: done }, "gone", "nothing"],
    ["going, never cut", uncutGoing, undefined, "confirm"],
    ["going, never cut, its snapshot there", uncutGoing, "there", "in-use"],
    ["going, never cut, its snapshot gone", uncutGoing, "gone", "change"],
    ["going, cut, its snapshot gone", cutGoing, "gone", "in-use"],
  ] as const) {
    test(`${name}: ${expected}`, () => expect(step(sketch, { snapshot })).toBe(expected));
  }
});

test("the status of a snapshot is that of its content, written only where it differs", () => {
  const made = content({
    status: {
      snapshotHandle: "x",
      readyToUse: true,
      restoreSize: 1_048_576,
      creationTime: 1_700_000_000_000_000_000,
    },
  });
  const status = {
    boundVolumeSnapshotContentName: "snapcontent-s1",
    readyToUse: true,
    restoreSize: "1Mi",
    creationTime: "2023-11-14T22:13:20Z",
  };

  expect(snapshotStatus(snapshot(), made)).toEqual(status);
  expect(snapshotStatus(snapshot({ status }), made)).toBeUndefined();
  expect(snapshotStatus(snapshot({ status: { ...status, error: { message: "x" } } }), made)).toEqual({
    error: null,
  });
});

test("a claim is held while one of its snapshots may be being cut, and not by one that failed for good", () => {
  const [asked, failed] = [
    content({ metadata: { annotations: { [BEING_CREATED]: "yes" } }, status: { error: { message: "x" } } }),
    content({ status: { error: { message: "x" } } }),
  ];
  const going = claim({ metadata: { deletionTimestamp: "now" } });

  expect(isBeingCut(snapshot(), undefined, claim())).toBe(true);
  expect(isBeingCut(snapshot(), undefined, going)).toBe(false);
  expect(isBeingCut(snapshot(), content(), going)).toBe(true);
  expect(isBeingCut(snapshot(), asked, going)).toBe(true);
  expect(isBeingCut(snapshot(), failed, going)).toBe(false);
});
