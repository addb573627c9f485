import { beforeAll, describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { createAuthority } from "../certificates.ts";
import { bundleOf, planAuthorities, takeStep, type KnownAuthority } from "./authority-plan.ts";

const DAY_MS = 24 * 3_600_000;
const START_MS = Date.UTC(2026, 0, 1);
const TEN_YEARS = 3_650;

/** Made on that day. Certificates begin five minutes before they are made. */
async function authority(day: number, days: number): Promise<KnownAuthority> {
  const clock = new SimScheduler(createSeededRandom(1)).createClock();
  clock.jumpWall(day * DAY_MS);
  const { certificate, key } = await createAuthority(
    { clock },
    { commonName: "mooring-ca", validForMs: days * DAY_MS },
  );
  return { certificate, key };
}

function planOn(day: number, ...authorities: (KnownAuthority | undefined)[]) {
  const known = authorities.filter((authority) => authority !== undefined);
  const { step, nextAtMs } = planAuthorities(known, START_MS + day * DAY_MS);
  return { step, nextDay: Math.round((nextAtMs - START_MS) / DAY_MS) };
}

describe("an authority of ten years", () => {
  let old: KnownAuthority, next: KnownAuthority, late: KnownAuthority;
  beforeAll(async () => {
    old = await authority(0, TEN_YEARS);
    next = await authority(3_255, TEN_YEARS);
    late = await authority(3_640, TEN_YEARS);
  });
  const trusted = (authority: KnownAuthority) => ({ certificate: authority.certificate });

  for (const [name, day, known, step, nextDay] of [
    ["is left alone for most of its life", 3_254, () => [old], undefined, 3_255],
    ["is joined by its successor 395 days before its end", 3_255, () => [old], "announce", 3_255],
    ["joined, it goes on signing", 3_256, () => [old, next], undefined, 3_620],
    [
      "still does so a year later, when no older bundle has a client",
      3_619,
      () => [old, next],
      undefined,
      3_620,
    ],
    ["hands over thirty days before its end", 3_620, () => [old, next], "switch", 3_620],
    ["is trusted for as long as it lives", 3_649, () => [next, trusted(old)], undefined, 3_650],
    ["is forgotten at its end", 3_650, () => [next, trusted(old)], "drop", 3_650],
    ["leaves a successor that begins the same", 3_651, () => [next], undefined, 3_255 + 3_255],
    ["of a server that was off for years is joined at once", 3_640, () => [old], "announce", 3_255],
    ["and hands over when half of what was left has passed", 3_644, () => [old, late], undefined, 3_645],
    ["not sooner", 3_645, () => [old, late], "switch", 3_645],
    ["that ended unnoticed is joined", 4_000, () => [old], "announce", 3_255],
    ["and hands over in the same moment", 4_000, () => [old, next], "switch", 3_620],
  ] as const) {
    test(`${name} (day ${day}: ${step ?? "nothing"})`, () => {
      expect(planOn(day, ...known())).toEqual({ step, nextDay });
    });
  }

  test("goes from step to step without a moment in which the bundle lacks what signed a certificate", () => {
    const announced = takeStep([old], { kind: "announce", successor: next });
    const switched = takeStep(announced, { kind: "switch" });
    const dropped = takeStep(switched, { kind: "drop", nowMs: START_MS + 3_650 * DAY_MS });

    expect(announced).toEqual([old, next]);
    expect(switched).toEqual([next, trusted(old)]);
    expect(dropped).toEqual([next]);
    expect(bundleOf(announced)).toBe(old.certificate + next.certificate);
    expect(takeStep(switched, { kind: "drop", nowMs: START_MS })).toEqual(switched);
  });
});

test("an authority of 60 days is announced after 30 and leaves after 50", async () => {
  const [old, next] = [await authority(0, 60), await authority(30, 60)];

  expect(planOn(29, old)).toEqual({ step: undefined, nextDay: 30 });
  expect(planOn(49, old, next)).toEqual({ step: undefined, nextDay: 50 });
  expect(planOn(51, old, next).step).toBe("switch");
});
