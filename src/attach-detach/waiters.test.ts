import { expect, test } from "vitest";
import { placementWith } from "./stage.testing.ts";
import type { WaitingFor } from "./waiting.ts";
import { World } from "./world.ts";

const mismatch = (name: string): WaitingFor => ({
  reason: "attachment-mismatch",
  object: { kind: "VolumeAttachment", name },
  sinceMs: 0,
  message: "",
});

test("a placement is found under its last wait only, and under none once that has ended", () => {
  const world = new World();
  const placement = placementWith(world, { wanted: true });
  const { waiters } = world;

  placement.waiting = mismatch("one");
  waiters.follow(placement);
  expect(waiters.onAttachment("one")).toEqual([placement]);

  placement.waiting = mismatch("two");
  waiters.follow(placement);
  expect([waiters.onAttachment("one"), waiters.onAttachment("two")]).toEqual([[], [placement]]);
  expect([...waiters.attachments()]).toEqual(["two"]);

  placement.waiting = { ...mismatch("n"), reason: "held-by-other-node", object: { kind: "Node", name: "n" } };
  waiters.follow(placement);
  expect(waiters.onVolume(placement.volume.name)).toEqual([placement]);
  expect([...waiters.attachments()]).toEqual([]);

  placement.waiting = undefined;
  waiters.follow(placement);
  expect(waiters.size).toBe(0);
});

test("one that is forgotten leaves nothing behind", () => {
  const world = new World();
  const placement = placementWith(world, { wanted: true });
  placement.waiting = mismatch("one");
  world.waiters.follow(placement);

  placement.want = undefined;
  world.tidy(placement);

  expect(world.waiters.size).toBe(0);
  expect(world.waiters.onAttachment("one")).toEqual([]);
});
