import { expect, test } from "vitest";
import { forSeeds } from "../../sim/seeds.ts";
import { Texts, type KeptObject } from "./texts.ts";

const key = { resource: "configmaps", namespace: "default", name: "a" };

/** Some with characters of two and four bytes, some too long for a slab. */
function textOf(number: number, chars: number): string {
  return `${number} ${(number % 3 === 0 ? "é🙂" : "xyz").repeat(Math.ceil(chars / 3))}`;
}

test("a text reads the same while it is new, once it is packed, and after others around it are released", () =>
  forSeeds(10, (random) => {
    const texts = new Texts();
    const live = new Map<KeptObject, string>();
    for (let number = 1; number <= 300; number++) {
      const text = textOf(number, random.int(50) === 0 ? 150_000 : random.int(8_000));
      live.set(texts.keep(key, { key, revision: number, text }), text);

      for (const object of live.keys()) {
        if (live.size < 50 || random.int(20) > 0) continue;
        live.delete(object);
        texts.release(object);
      }
    }

    for (const [object, text] of live) expect(object.text === text).toBe(true);
  }));

test("whoever still reads an object reads it after its release too", () => {
  const texts = new Texts();
  const kept = Array.from({ length: 10_000 }, (_, number) =>
    texts.keep(key, { key, revision: number + 1, text: textOf(number, 1_000) }),
  );

  for (const object of kept) texts.release(object);

  kept.forEach((object, number) => expect(object.text === textOf(number, 1_000)).toBe(true));
});

test("what is left of many objects moves together: slabs are at least half full", () => {
  const texts = new Texts();
  const kept = Array.from({ length: 20_000 }, (_, number) =>
    texts.keep(key, { key, revision: number + 1, text: textOf(1, 2_000) }),
  );
  const packed = kept.filter(({ place }) => typeof place !== "string");

  const left = packed.filter((_, index) => index % 10 === 0);
  for (const object of packed) if (!left.includes(object)) texts.release(object);

  const leftBytes = left.reduce((sum, { bytes }) => sum + bytes, 0);
  const slabs = new Set(left.map(({ place }) => place));
  expect(left.length).toBeGreaterThan(1_500);
  expect(slabs.size).toBeLessThanOrEqual(Math.ceil(leftBytes / (256 * 1024)) + 1);
});
