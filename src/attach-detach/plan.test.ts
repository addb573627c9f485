import { describe, expect, test } from "vitest";
import type { ObjectKey } from "../kube/object.ts";
import { forceReason, planPlacement, type Plan, type Surroundings } from "./plan.ts";
import {
  around,
  NOW_MS,
  placementWith,
  podNamed,
  specWith,
  VOLUME,
  type NodeSketch,
} from "./stage.testing.ts";
import { including, World, type Hold } from "./world.ts";

/** One word for a plan: what is done, or what is waited for. */
function verdict({ actions, waitingFor }: Plan): string {
  const done = actions.map((action) => {
    if (action.kind === "list") return action.listed ? "list" : "unlist";
    if (action.kind === "detach") return action.force ? `force:${forceReason(action.force)}` : "detach";
    return action.kind;
  });
  return [...done, ...(waitingFor ? [waitingFor.reason] : [])].join(" ") || "settled";
}

describe("a volume that nobody wants any more", () => {
  const MINUTES_6 = 360_000;
  type Row = readonly [node: NodeSketch, unwantedMs: number, verdict: string];
  const rows: readonly Row[] = [
    [{}, 0, "detach"],
    [{ lists: true }, 0, "node-status"],
    [{ inUse: true }, 0, "still-mounted"],
    [{ inUse: true }, 10 * MINUTES_6, "still-mounted"], // a ready node is never forced, however long it takes
    [{ inUse: true, ready: false }, 0, "still-mounted"],
    [{ inUse: true, ready: false }, MINUTES_6, "still-mounted"],
    [{ inUse: true, ready: false }, MINUTES_6 + 1, "force:timeout"], // longer than six minutes
    [{ inUse: false, ready: false }, MINUTES_6 + 1, "detach"], // nobody uses it: nothing is forced
    [{ inUse: true, outOfService: true }, 0, "force:out-of-service"],
    [{ inUse: true, outOfService: true, ready: false }, MINUTES_6, "force:out-of-service"],
    // Both hold: upstream counts the expired time first, and does not ask then whether the node is healthy.
    [{ inUse: true, outOfService: true, ready: false }, MINUTES_6 + 1, "force:timeout"],
    [{ inUse: true, outOfService: true }, MINUTES_6 + 1, "force:timeout"],
    [{ inUse: true, exists: false }, MINUTES_6, "still-mounted"], // a deleted node is no proof
    [{ inUse: true, exists: false }, MINUTES_6 + 1, "force:timeout"],
    [{ inUse: false, exists: false }, 0, "detach"],
    [{ inUse: true, managed: false }, 10 * MINUTES_6, "settled"], // attaches for itself: left alone
  ];

  for (const [node, unwantedMs, expected] of rows)
    test(`${JSON.stringify(node)}, unwanted for ${unwantedMs} ms: ${expected}`, () => {
      const held = { unwantedSinceMs: NOW_MS - unwantedMs };
      const placement = placementWith(new World(), { on: node, held });

      expect(verdict(planPlacement(placement, around()))).toBe(expected);
    });

  const RULES: readonly (readonly [rule: Surroundings["forceRule"], node: NodeSketch, verdict: string])[] = [
    [{ kind: "never" }, { ready: false }, "policy-never"],
    [{ kind: "never" }, { outOfService: true }, "policy-never"],
    [{ kind: "never" }, {}, "still-mounted"],
    [{ kind: "when-fenced" }, { ready: false }, "still-mounted"],
    [{ kind: "when-fenced" }, { ready: false, outOfService: true }, "force:out-of-service"],
    [{ kind: "after", ms: 1_000 }, { ready: false }, "force:timeout"],
    [{ kind: "after", ms: 1_000 }, { ready: true }, "still-mounted"],
  ];
  for (const [forceRule, node, expected] of RULES)
    test(`in use for 20 min under ${JSON.stringify(forceRule)} on ${JSON.stringify(node)}: ${expected}`, () => {
      const held = { unwantedSinceMs: NOW_MS - 1_200_000 };
      const placement = placementWith(new World(), { on: { ...node, inUse: true }, held });

      expect(verdict(planPlacement(placement, around({ forceRule })))).toBe(expected);
    });

  test("still listed: it is taken off the list first, and looked at again when the server has said so", () => {
    const placement = placementWith(new World(), { on: { lists: true }, held: { listed: true } });

    expect(verdict(planPlacement(placement, around()))).toBe("unlist node-status");
  });

  test("named in a write whose answer never came: it may be listed yet, so no detach", () => {
    const placement = placementWith(new World(), { held: {} });
    placement.node.unconfirmed = new Set([VOLUME]);

    expect(verdict(planPlacement(placement, around()))).toBe("node-status");
  });

  test("named in a lost list that may still arrive: no detach until that cannot happen", () => {
    const placement = placementWith(new World(), { held: {} });
    const version = placement.node.node?.metadata.resourceVersion;
    placement.node.late = new Map([[VOLUME, { version, untilMs: NOW_MS + 5_000 }]]);

    const { revisitAtMs, waitingFor } = planPlacement(placement, around());

    expect(revisitAtMs).toBe(NOW_MS + 5_000);
    expect(waitingFor?.message).toContain("may still arrive; no longer in 5 s");
    expect(verdict(planPlacement(placement, around({ nowMs: NOW_MS + 5_000 })))).toBe("detach");
    placement.node.late = new Map([[VOLUME, { version: "older", untilMs: NOW_MS + 5_000 }]]);
    expect(verdict(planPlacement(placement, around()))).toBe("detach");
  });

  test("on a node that is not ready, the plan says when it will be forced and looks again then", () => {
    const held = { unwantedSinceMs: NOW_MS - 60_000 };
    const placement = placementWith(new World(), { on: { inUse: true, ready: false }, held });

    const { revisitAtMs, waitingFor } = planPlacement(placement, around());

    expect(revisitAtMs).toBe(NOW_MS + 300_001);
    expect(waitingFor?.untilMs).toBe(NOW_MS + 300_001);
    expect(waitingFor?.message).toContain("forced in 301 s");
  });

  for (const [unwantedMs, podsWatchedMs, outOfService, expected] of [
    [360_001, 0, false, "still-mounted"], // a pod that uses it again would not be heard of
    [360_001, 1_999, false, "still-mounted"], // nor one that a resumed watch has still to tell
    [360_001, 2_000, false, "force:timeout"],
    [360_000, 2_000, false, "still-mounted"],
    [360_001, 0, true, "force:out-of-service"], // the word of an operator needs no watch
  ] as const)
    test(`unwanted for ${unwantedMs} ms, pods watched for ${podsWatchedMs} ms, ${outOfService ? "" : "not "}out of service: ${expected}`, () => {
      const held = { unwantedSinceMs: NOW_MS - unwantedMs };
      const on = { inUse: true, ready: false, outOfService };
      const placement = placementWith(new World(), { on, held });

      const plan = planPlacement(placement, around({ podsWatchedMs }));

      expect(verdict(plan)).toBe(expected);
      if (expected === "still-mounted") expect(plan.revisitAtMs).toBeGreaterThan(NOW_MS);
    });

  for (const [withDriver, expected] of [
    [true, "abandon driver-attaching"],
    [false, "api-request"], // a create that was called off could arrive after another node got the volume
  ] as const)
    test(`its attach is under way, ${withDriver ? "with the driver" : "on the wire"}: ${expected}`, () => {
      for (const held of [undefined, {}]) {
        const placement = placementWith(new World(), held && { held });
        placement.busy = { operation: "volume_attach", sinceMs: 0, withDriver, abort: new AbortController() };

        expect(verdict(planPlacement(placement, around()))).toBe(expected);
      }
    });
});

describe("frozen: what is not understood is not detached", () => {
  const FROZEN: readonly (readonly [changes: Partial<Surroundings>, verdict: string])[] = [
    [{ pluginKnown: false }, "unknown-plugin"],
    [{ attachment: "mismatch" }, "attachment-mismatch"],
    [{ stalenessMs: 180_001 }, "stale-cache"],
    [{ stalenessMs: 180_000 }, "detach"],
  ];
  for (const [changes, expected] of FROZEN)
    test(`${JSON.stringify(changes)}: ${expected}`, () => {
      const placement = placementWith(new World(), { held: {} });

      expect(verdict(planPlacement(placement, around(changes)))).toBe(expected);
    });

  const QUESTIONS = [
    [{ why: "claim-missing", claim: "default/data" }, { claimed: "data" }, "unresolved-pod"],
    [{ why: "claim-missing", claim: "default/data" }, { claimed: "other" }, "detach"],
    [{ why: "claim-missing", claim: "default/data" }, {}, "unresolved-pod"], // whose it is, is not known
    [{ why: "volume-missing", claim: "default/data", persistentVolume: "pv" }, {}, "unresolved-pod"],
    [{ why: "volume-missing", claim: "default/data", persistentVolume: "pv-2" }, {}, "detach"],
    [{ why: "claim-unbound", claim: "default/data" }, { claimed: "data" }, "unresolved-pod"], // may have been bound
    [{ why: "claim-unbound", claim: "default/data" }, { claimed: "other" }, "detach"],
    [{ why: "claim-not-owned", claim: "default/data" }, {}, "detach"],
  ] as const;
  for (const [question, { claimed }, expected] of QUESTIONS as readonly (readonly [
    { why: "claim-missing"; claim: string; persistentVolume?: string },
    { claimed?: string },
    string,
  ])[])
    test(`a pod there cannot be followed (${JSON.stringify(question)}), the volume is of claim ${String(claimed)}: ${expected}`, () => {
      const spec = specWith();
      if (claimed && spec.kind === "persistent" && spec.volume.spec)
        spec.volume.spec.claimRef = { namespace: "default", name: claimed };
      const placement = placementWith(new World(), { held: { spec } });
      const { why, claim, persistentVolume } = question;
      placement.node.unresolved = including(placement.node.unresolved, {
        pod: podNamed("db"),
        volume: "data",
        resolution: { kind: "unresolved", why, claim: claim as ObjectKey, persistentVolume, message: "no" },
        sinceMs: NOW_MS,
      });

      expect(verdict(planPlacement(placement, around()))).toBe(expected);
    });
});

describe("a volume that is wanted", () => {
  type Row = readonly [node: NodeSketch, held: Partial<Hold> | undefined, Partial<Surroundings>, string];
  const rows: readonly Row[] = [
    [{}, undefined, {}, "attach"],
    [{}, { confirmed: false }, {}, "attach"], // perhaps attached here already: the attach finds out
    [{ managed: false }, undefined, {}, "node-not-managed"],
    [{ exists: false }, undefined, {}, "node-missing"],
    [{}, undefined, { backoff: () => ({ untilMs: NOW_MS + 500, lastError: "no" }) }, "backoff"],
    [{}, undefined, { attachment: "mismatch" }, "attachment-mismatch"],
    [{ lists: true }, { listed: true }, {}, "settled"],
    [{ lists: false }, { listed: true }, {}, "node-status"],
    [{ lists: false }, { listed: false }, {}, "list node-status"],
    [{ lists: true }, { listed: true }, { attachment: "not-attached" }, "lost"],
    [{ lists: true }, { listed: true, proven: false }, {}, "settled"], // found so at the start, and its node agrees
    [{ lists: false }, { listed: true, proven: false }, {}, "doubt"], // a node is never given what was not proven
    [{ exists: false }, { listed: true, proven: false }, {}, "settled"],
  ];
  for (const [node, held, changes, expected] of rows)
    test(`${JSON.stringify({ node, held, changes })}: ${expected}`, () => {
      const placement = placementWith(new World(), { on: node, wanted: true, ...(held && { held }) });

      expect(verdict(planPlacement(placement, around(changes)))).toBe(expected);
    });
});

describe("a volume that another node holds", () => {
  const HOLDERS: readonly (readonly [modes: string[], held: Partial<Hold>, verdict: string])[] = [
    [["ReadWriteOnce"], { confirmed: true }, "tell-waiting held-by-other-node"],
    [["ReadWriteOnce"], { confirmed: false }, "tell-waiting held-by-other-node"], // perhaps is enough
    [["ReadWriteOncePod"], { confirmed: true }, "tell-waiting held-by-other-node"],
    [["ReadWriteMany"], { confirmed: true }, "attach"],
    [["ReadWriteOnce", "ReadOnlyMany"], { confirmed: true }, "attach"],
  ];
  for (const [modes, held, expected] of HOLDERS)
    test(`${modes.join("+")}, there ${JSON.stringify(held)}: ${expected}`, () => {
      const world = new World();
      placementWith(world, { on: { name: "b" }, held });
      const placement = placementWith(world, { on: { name: "a" } });
      placement.want = { spec: specWith(modes), pods: [podNamed("web")], sinceMs: 0, told: new Set() };

      expect(verdict(planPlacement(placement, around()))).toBe(expected);
    });

  test("pods are told once, and pods that come later are told too", () => {
    const world = new World();
    placementWith(world, { on: { name: "b" }, held: {} });
    const placement = placementWith(world, { on: { name: "a" }, wanted: true });
    const want = placement.want;
    if (want) want.told = new Set(["uid-web"]);

    expect(verdict(planPlacement(placement, around()))).toBe("held-by-other-node");

    want?.pods.push(podNamed("late"));
    expect(verdict(planPlacement(placement, around()))).toBe("tell-waiting held-by-other-node");
  });

  test("an unmanaged node that lists it keeps others away as well", () => {
    const world = new World();
    placementWith(world, { on: { name: "b", managed: false }, held: {} });
    const placement = placementWith(world, { on: { name: "a" }, wanted: true });

    expect(verdict(planPlacement(placement, around()))).toBe("tell-waiting held-by-other-node");
  });

  const RIVALS: readonly (readonly [here: Rival, there: Rival, verdict: string])[] = [
    [{ confirmed: false }, { confirmed: true }, "detach"], // surely there, perhaps here: here lets go
    [{ confirmed: true, listed: true }, { confirmed: false }, "node-status"],
    [{ confirmed: false }, { confirmed: false }, "tell-waiting held-by-other-node"], // "a" comes before "b"
    [{ confirmed: true }, { confirmed: true, on: { inUse: true } }, "detach"],
    [{ confirmed: true, listed: true, on: { inUse: true } }, { confirmed: true }, "node-status"],
    [{ on: { lists: true } }, { on: { inUse: true } }, "node-status"], // off the list first
    [{ listed: true, on: { lists: true } }, { on: { inUse: true } }, "unlist node-status"],
    [{ confirmed: true }, { confirmed: true, on: { managed: false } }, "detach"],
    [{ on: { inUse: true } }, { on: { managed: false, inUse: true } }, "held-by-other-node"], // in use: nobody moves
  ];
  for (const [{ on: here, ...heldHere }, { on: there, ...heldThere }, expected] of RIVALS)
    test(`two nodes hold it: here ${JSON.stringify({ here, heldHere })}, there ${JSON.stringify({ there, heldThere })}: ${expected}`, () => {
      const world = new World();
      placementWith(world, { on: { name: "b", ...there }, wanted: true, held: heldThere });
      const placement = placementWith(world, { on: { name: "a", ...here }, wanted: true, held: heldHere });

      expect(verdict(planPlacement(placement, around()))).toBe(expected);
    });
});

type Rival = Partial<Hold> & { readonly on?: NodeSketch };
