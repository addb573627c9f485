import { assert } from "./assert.ts";
import type { Random } from "./random.ts";

/**
 * sfc32: 128 bits of state, passes PractRand, four additions a draw. Two seeds that differ in one bit
 * are unrelated after the twelve warm-up rounds.
 */
export function createSeededRandom(seed: number | string): Random {
  const root = hash(String(seed));
  return stream(root, root);
}

function stream(lineage: number, seed: number): Random {
  let [a, b, c, counter] = [seed, hash(`${seed}/b`), hash(`${seed}/c`), 1];

  function next(): number {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    c |= 0;
    return sum >>> 0;
  }
  for (let round = 0; round < 12; round++) next();

  return {
    float: () => next() / 2 ** 32,
    int(below) {
      assert(Number.isInteger(below) && below > 0, `random.int(${below}) needs a whole number above 0`);
      return Math.floor((next() / 2 ** 32) * below);
    },
    // From the lineage, not from the state: forks do not depend on how much was drawn before.
    fork: (name) => stream(hash(`${lineage}/${name}`), hash(`${lineage}/${name}`)),
  };
}

/** FNV-1a with a final avalanche (murmur3's), so that "1" and "2" land far apart. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  value ^= value >>> 16;
  value = Math.imul(value, 0x85ebca6b);
  value ^= value >>> 13;
  value = Math.imul(value, 0xc2b2ae35);
  return (value ^ (value >>> 16)) | 0;
}
