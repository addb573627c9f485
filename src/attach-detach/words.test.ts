import { describe, expect, test } from "vitest";
import { volumeAttachmentName } from "../volumes/names.ts";
import type { ForceRule } from "./options.ts";
import { inherit } from "./new-node.ts";
import { planPlacement } from "./plan.ts";
import { around, NOW_MS, placementWith, VOLUME, type NodeSketch } from "./stage.testing.ts";
import { standingWords } from "./words.ts";
import { NO_FOREIGN, World, type ForeignHold } from "./world.ts";

/** Every text about attaching and mounting, in every state it can be said in: none claims what is not so. */

const FOREIGN: ForeignHold = {
  name: "theirs",
  attached: true,
  deleting: false,
  persistentVolume: "pv",
  singleNode: true,
};

describe("what is left as it is", () => {
  for (const [held, foreign, expected] of [
    [undefined, "none", "is not attached"],
    [undefined, "not attached", "may be attached, and is left as it is"],
    [undefined, "attached", "stays attached"],
    ["uncertain", "none", "may be attached, and is left as it is"],
    ["uncertain", "not attached", "may be attached, and is left as it is"],
    ["uncertain", "attached", "stays attached"],
    ["confirmed", "none", "stays attached"],
    ["confirmed", "not attached", "stays attached"],
    ["confirmed", "attached", "stays attached"],
  ] as const)
    test(`held ${held ?? "not at all"}, others' ${foreign}: ${expected}`, () => {
      const placement = placementWith(new World(), {
        wanted: held === undefined,
        ...(held && { held: { confirmed: held === "confirmed" } }),
      });
      placement.foreign =
        foreign === "none" ? NO_FOREIGN : [{ ...FOREIGN, attached: foreign === "attached" }];

      expect(standingWords(placement)).toBe(expected);
    });
});

describe("a volume that counts as mounted", () => {
  const NODES: readonly NodeSketch[] = [true, false].flatMap((exists) =>
    [true, false].flatMap((inUse) =>
      [true, false].flatMap((ready) =>
        [true, false].map((outOfService) => ({ exists, inUse, ready, outOfService })),
      ),
    ),
  );
  const RULES: readonly ForceRule[] = [
    { kind: "never" },
    { kind: "when-fenced" },
    { kind: "after", ms: 360_000 },
  ];
  const attachment = volumeAttachmentName({ driver: "d.example.com", volumeHandle: "v" }, "a");

  for (const on of NODES)
    for (const forceRule of RULES) {
      const plan = () => {
        const world = new World();
        const placement = placementWith(world, { on, held: { unwantedSinceMs: NOW_MS - 60_000 } });
        placement.node.assumed = on.inUse ? placement.node.assumed : new Set([placement]);
        return planPlacement(placement, around({ forceRule }));
      };
      test(`${JSON.stringify(on)} under ${forceRule.kind}: each clause is true`, () => {
        const { waitingFor, actions } = plan();
        // Forced at once: nothing is said.
        if (actions.length > 0) {
          expect(forceRule.kind !== "never" && on.exists && on.outOfService).toBe(true);
          return;
        }
        const text = waitingFor?.message ?? "";
        const healthy = on.exists === true && on.ready === true;
        const clauses: readonly (readonly [words: string, holds: boolean])[] = [
          [`node a is gone and was last known to use ${VOLUME}`, !on.exists && on.inUse === true],
          [`node a is gone and may have used ${VOLUME}`, !on.exists && !on.inUse],
          [`node a still uses ${VOLUME}`, on.exists === true && on.inUse === true],
          ["it has not been heard of since it was attached", on.exists === true && !on.inUse],
          ["once the node has unmounted it", on.exists === true && (healthy || forceRule.kind !== "after")],
          ["once the node is back and has unmounted it", !on.exists && forceRule.kind !== "after"],
          [
            "forced in 301 s if the node stays not ready",
            on.exists === true && !healthy && forceRule.kind === "after",
          ],
          ["forced in 301 s if the node does not come back ready", !on.exists && forceRule.kind === "after"],
          ["taint node.kubernetes.io/out-of-service", !healthy && forceRule.kind === "when-fenced"],
          ["the detach policy forbids to force it", waitingFor?.reason === "policy-never"],
          [
            `delete VolumeAttachment ${attachment} by hand once the machine is off`,
            forceRule.kind !== "after" && !text.endsWith("unmounted it"),
          ],
        ];

        for (const [words, holds] of clauses) expect([words, text.includes(words)]).toEqual([words, holds]);
        expect(waitingFor?.reason).toBe(
          forceRule.kind === "never" && (!healthy || on.outOfService) ? "policy-never" : "still-mounted",
        );
      });
    }
});

describe("a volume that is older than its Node object, which has not spoken yet", () => {
  const SILENT =
    "its Node object was created after the volume was attached and has not listed volumes in use yet";
  for (const [on, clauses] of [
    [{}, [`may be using ${VOLUME}: ${SILENT}`, "or in 90 s if the node stays ready until then"]],
    [{ ready: false }, [`may be using ${VOLUME}: ${SILENT}`, "forced in 301 s if the node stays not ready"]],
    [{ exists: false }, [`is gone and may have used ${VOLUME}`, "if the node does not come back ready"]],
    [{ inUse: true }, [`still uses ${VOLUME}`, "it is detached once the node has unmounted it"]],
  ] as const satisfies readonly (readonly [NodeSketch, readonly string[]])[])
    test(`${JSON.stringify(on)}: ${clauses.join("; ")}`, () => {
      const placement = placementWith(new World(), { on, held: { unwantedSinceMs: NOW_MS - 60_000 } });
      placement.node.readySinceMs = NOW_MS - 30_000;
      inherit(placement);

      const text = planPlacement(placement, around()).waitingFor?.message ?? "";

      for (const words of clauses) expect(text).toContain(words);
      expect(text.includes(SILENT)).toBe(clauses.some((words) => words.includes(SILENT)));
    });
});
