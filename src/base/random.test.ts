import { expect, test } from "vitest";
import { backoffMs, jittered } from "./backoff.ts";
import { pick, shuffle, uuid } from "./random.ts";
import { createSeededRandom } from "./seeded-random.ts";
import { createSystemRandom } from "./system-random.ts";

test("one seed gives one sequence, another seed another", () => {
  const draw = (seed: number) => {
    const random = createSeededRandom(seed);
    return Array.from({ length: 8 }, () => random.float());
  };

  expect(draw(1)).toEqual(draw(1));
  expect(draw(1)).not.toEqual(draw(2));
});

test("a fork does not depend on what was drawn before it", () => {
  const early = createSeededRandom(1).fork("jitter");
  const random = createSeededRandom(1);
  random.float();
  random.int(10);
  const late = random.fork("jitter");

  expect(late.float()).toBe(early.float());
  expect(late.float()).not.toBe(createSeededRandom(1).fork("names").float());
});

test("whole numbers are spread evenly: 60,000 throws of a die within 5 % of 10,000 each", () => {
  const random = createSeededRandom("die");
  const counts = [0, 0, 0, 0, 0, 0];

  for (let index = 0; index < 60_000; index++) counts[random.int(6)]! += 1;

  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
});

test("shuffle keeps every item, pick takes one of them, and picking from nothing is a mistake", () => {
  const random = createSeededRandom(3);

  expect(shuffle(random, [1, 2, 3, 4, 5]).sort()).toEqual([1, 2, 3, 4, 5]);
  expect(["a", "b"]).toContain(pick(random, ["a", "b"]));
  expect(() => pick(random, [])).toThrow(/int\(0\)/);
});

test("a uuid is version 4, and two processes do not draw the same", () => {
  const form = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  expect(uuid(createSeededRandom(5))).toMatch(form);
  expect(uuid(createSystemRandom())).not.toBe(uuid(createSystemRandom()));
});

for (const [failures, expectedMs] of [
  [1, 500],
  [2, 1_000],
  [8, 64_000],
  [9, 122_000], // the cap
  [5_000, 122_000], // 2^5000 is Infinity, and still the cap
] as const) {
  test(`failure ${failures} waits ${expectedMs} ms`, () => {
    expect(backoffMs(failures, { initialMs: 500, maxMs: 122_000 })).toBe(expectedMs);
  });
}

test("jitter only ever lengthens", () => {
  const random = createSeededRandom(9);

  for (let index = 0; index < 1_000; index++) {
    const ms = jittered(100, 0.5, random);
    expect(ms).toBeGreaterThanOrEqual(100);
    expect(ms).toBeLessThan(150);
  }
});
