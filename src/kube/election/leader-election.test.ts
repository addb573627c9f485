import { describe, expect, test } from "vitest";
import type { Lease } from "../api/lease.ts";
import { recordOf } from "./leader-election-record.ts";
import { createElectionConfig, startOfElection, step } from "./leader-election.ts";
import type { Election, ElectionEffect, ElectionEvent } from "./leader-election.ts";

const config = createElectionConfig({
  namespace: "ns",
  name: "l",
  identity: "me",
  labels: { app: "mooring" },
});
const WALL = Date.UTC(2026, 0, 1);

function lease(holderIdentity: string | undefined, spec: Lease["spec"] = {}, version = "7"): Lease {
  return {
    metadata: { name: "l", namespace: "ns", resourceVersion: version },
    spec: {
      ...(holderIdentity !== undefined && { holderIdentity }),
      leaseDurationSeconds: 15,
      renewTime: "T1",
      ...spec,
    },
  };
}

/** Steps through a story of [at, event] and answers the last step. */
function play(
  story: readonly (readonly [number, ElectionEvent])[],
  start: Election = startOfElection,
): { state: Election; effects: readonly ElectionEffect[] } {
  let state = start;
  let effects: readonly ElectionEffect[] = [];
  for (const [nowMs, event] of story)
    [state, effects] = step(config, state, event, { nowMs, wallMs: WALL + nowMs });
  return { state, effects };
}

const kinds = (effects: readonly ElectionEffect[]) => effects.map(({ kind }) => kind);
const find = <K extends ElectionEffect["kind"]>(effects: readonly ElectionEffect[], kind: K) =>
  effects.find((effect): effect is Extract<ElectionEffect, { kind: K }> => effect.kind === kind)!;

/** A leader since 0, by a write sent at 0 and answered at 100. */
function leading(): { state: Election; written: Lease } {
  const asked = play([[0, { kind: "read", lease: lease("") }]]);
  const update = find(asked.effects, "update").lease;
  const written = { ...update, metadata: { ...update.metadata, resourceVersion: "8" } };
  return { state: play([[100, { kind: "written", lease: written }]], asked.state).state, written };
}

describe("a candidate", () => {
  test("creates the lease where there is none, as client-go writes it", () => {
    const { effects } = play([
      [0, { kind: "due" }],
      [10, { kind: "read", lease: undefined }],
    ]);

    expect(effects).toEqual([
      {
        kind: "create",
        lease: {
          apiVersion: "coordination.k8s.io/v1",
          kind: "Lease",
          metadata: { name: "l", namespace: "ns", labels: { app: "mooring" } },
          spec: {
            holderIdentity: "me",
            leaseDurationSeconds: 15,
            acquireTime: "2026-01-01T00:00:00.010000Z",
            renewTime: "2026-01-01T00:00:00.010000Z",
            leaseTransitions: 0,
          },
        },
      },
    ]);
  });

  test("takes a released lease at once, keeps fields it does not know, and counts the transition", () => {
    const released = lease("", { leaseTransitions: 4, ...{ strategy: "OldestEmulationVersion" } });

    const { effects } = play([[0, { kind: "read", lease: released }]]);

    const { lease: update } = find(effects, "update");
    expect(update.metadata.resourceVersion).toBe("7");
    expect(update.spec).toMatchObject({
      holderIdentity: "me",
      leaseTransitions: 5,
      strategy: "OldestEmulationVersion",
    });
  });

  for (const [title, secondRead, atMs, next] of [
    ["unchanged for less than the duration: waits", lease("other"), 14_999, "wait"],
    ["unchanged for the duration: takes it", lease("other"), 15_000, "update"],
    ["renewed meanwhile: waits anew", lease("other", { renewTime: "T2" }), 15_000, "wait"],
    ["only relabelled: no sign of life", lease("other", {}, "9"), 15_000, "update"],
    ["held for longer by its own word: waits", lease("other", { leaseDurationSeconds: 60 }), 15_000, "wait"],
  ] as const) {
    test(`another's lease, ${title}`, () => {
      const { effects } = play([
        [
          0,
          {
            kind: "read",
            lease: lease("other", secondRead.spec?.leaseDurationSeconds === 60 ? secondRead.spec : {}),
          },
        ],
        [atMs, { kind: "read", lease: secondRead }],
      ]);

      expect(kinds(effects)).toContain(next);
    });
  }

  test("another's renewTime far in the past or future means nothing", () => {
    for (const renewTime of ["1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"]) {
      const first = play([[0, { kind: "read", lease: lease("other", { renewTime }) }]]);
      const later = play([[15_000, { kind: "read", lease: lease("other", { renewTime }) }]], first.state);

      expect(kinds(first.effects)).toEqual(["observed", "wait"]);
      expect(kinds(later.effects)).toEqual(["update"]);
    }
  });

  test("whose answer got lost leads if it reads its very record, from the time it was sent", () => {
    const asked = play([[0, { kind: "read", lease: lease("") }]]);
    const { lease: update } = find(asked.effects, "update");

    const { state, effects } = play(
      [
        [5_000, { kind: "failed" }],
        [5_200, { kind: "due" }],
        [5_300, { kind: "read", lease: update }],
      ],
      asked.state,
    );

    expect(kinds(effects)).toEqual(["observed", "became-leader", "wait"]);
    expect(state).toMatchObject({ kind: "leading", renewedAt: { nowMs: 0 } });
  });

  test("whose answer comes after the time it would have bought writes again instead of leading", () => {
    const asked = play([[0, { kind: "read", lease: lease("") }]]);
    const { lease: update } = find(asked.effects, "update");

    const { effects } = play([[10_000, { kind: "written", lease: update }]], asked.state);

    expect(kinds(effects)).toEqual(["observed", "update"]);
  });

  test("that reads an older record of its own writes anew: that one may be about to run out", () => {
    const { effects } = play([
      [0, { kind: "read", lease: lease("me", { acquireTime: "A", leaseTransitions: 3 }) }],
    ]);

    expect(recordOf(find(effects, "update").lease)).toMatchObject({ acquireTime: "A", leaseTransitions: 3 });
  });
});

describe("a leader", () => {
  test("renews without reading, a retry period after the last renewal was sent", () => {
    const { state, written } = leading();

    const { effects } = play([[2_000, { kind: "due" }]], state);

    const { lease: update } = find(effects, "update");
    expect(update.metadata.resourceVersion).toBe("8");
    expect(recordOf(update).acquireTime).toBe(recordOf(written).acquireTime);
    expect(recordOf(update).renewTime).toBe("2026-01-01T00:00:02.000001Z");
  });

  test("after a renewal without an answer keeps its old time and reads", () => {
    const { state } = leading();

    const failed = play(
      [
        [2_000, { kind: "due" }],
        [7_000, { kind: "failed" }],
        [7_200, { kind: "due" }],
      ],
      state,
    );

    expect(kinds(failed.effects)).toEqual(["slow-path", "get"]);
    expect(failed.state).toMatchObject({ kind: "leading", renewedAt: { nowMs: 0 } });
    expect(play([[10_000, { kind: "checked" }]], failed.state).state.kind).toBe("lost");
  });

  for (const [title, found, expected] of [
    ["another's", lease("other"), "lost"],
    ["nobody's", lease(""), "lost"],
    ["gone", undefined, "lost"],
    ["its own, not renewed", lease("me"), "leading"],
  ] as const) {
    test(`refused, reads at once; the lease is ${title}: ${expected}`, () => {
      const refused = play(
        [
          [2_000, { kind: "due" }],
          [2_100, { kind: "refused" }],
        ],
        leading().state,
      );
      expect(kinds(refused.effects)).toEqual(["slow-path", "get"]);

      const { state } = play([[2_200, { kind: "read", lease: found }]], refused.state);

      expect(state.kind).toBe(expected);
    });
  }

  test("refused twice in a row waits before it tries again", () => {
    const { effects } = play(
      [
        [2_000, { kind: "due" }],
        [2_100, { kind: "refused" }],
        [2_200, { kind: "read", lease: lease("me") }],
        [2_300, { kind: "refused" }],
      ],
      leading().state,
    );

    expect(kinds(effects)).toEqual(["slow-path", "wait"]);
  });

  for (const [nowMs, wallMs, expected] of [
    [9_999, 9_999, "leading"],
    [10_000, 10_000, "lost"],
    [3_000, 60_000, "lost"], // the machine slept: its monotonic clock stood still, the wall clock did not
    [3_000, -60_000, "leading"], // a wall clock set back proves nothing
  ] as const) {
    test(`${nowMs} ms after its renewal, ${wallMs} ms by the wall clock: ${expected}`, () => {
      const [state] = step(config, leading().state, { kind: "checked" }, { nowMs, wallMs: WALL + wallMs });

      expect(state.kind).toBe(expected);
    });
  }
});

describe("settings", () => {
  const names = { namespace: "ns", name: "l", identity: "me" };

  for (const [leaseDurationMs, renewDeadlineMs, retryPeriodMs, problem] of [
    [10_000, 10_000, 2_000, /lease duration 10000 ms must exceed renew deadline 10000 ms/],
    [15_000, 6_000, 5_000, /renew deadline 6000 ms must exceed 1.2 x retry period 5000 ms/],
    [900, 500, 100, /whole seconds/],
    [15_000, 10_000, 0, /must be positive/],
  ] as const) {
    test(`lease ${leaseDurationMs}, renew ${renewDeadlineMs}, retry ${retryPeriodMs} are refused`, () => {
      expect(() =>
        createElectionConfig({ ...names, leaseDurationMs, renewDeadlineMs, retryPeriodMs }),
      ).toThrow(problem);
    });
  }

  test("a lease of 2.5 s is written as 2 s, and its leader stops before those are over", () => {
    const odd = createElectionConfig({
      ...names,
      leaseDurationMs: 2_500,
      renewDeadlineMs: 2_400,
      retryPeriodMs: 500,
    });

    expect(odd).toMatchObject({ leaseSeconds: 2, validMs: 1_900 });
  });
});
