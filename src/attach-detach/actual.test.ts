import { expect, test } from "vitest";
import { markAttached } from "./actual.ts";
import { endPresumptions, isMounted } from "./node-view.ts";
import { NOW_MS, placementWith, specWith } from "./stage.testing.ts";
import { Tally } from "./tally.ts";
import { World } from "./world.ts";

const ATTACHED = { spec: specWith(), devicePath: "", listed: true, proven: true };

test("101: attached again, a volume is neither presumed mounted anew nor its detach timer reset", () => {
  const world = new World();
  const deps = { world, tally: new Tally({ bySpec: () => undefined }) };
  const placement = placementWith(world);
  markAttached(deps, placement, { ...ATTACHED, nowMs: NOW_MS });
  expect(isMounted(placement)).toBe(true);
  endPresumptions(placement.node);

  markAttached(deps, placement, { ...ATTACHED, nowMs: NOW_MS + 60_000 });

  expect(isMounted(placement)).toBe(false);
  expect(placement.hold?.unwantedSinceMs).toBe(NOW_MS);
});
