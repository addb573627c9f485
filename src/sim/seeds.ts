import { createSeededRandom } from "../base/seeded-random.ts";
import type { Random } from "../base/random.ts";

/**
 * Runs a property once a seed, one after the other. A failure names its seed and how to replay it alone:
 * `MOORING_SEED=17 npm run test:sim -- -t "name of the test"`. `MOORING_SEEDS` multiplies the count:
 * 20 searches, 0.25 is what `npm test` has time for; CI runs them all.
 */
export async function forSeeds(
  count: number,
  property: (random: Random, seed: number) => Promise<void> | void,
): Promise<void> {
  const only = process.env["MOORING_SEED"];
  const seeds =
    only === undefined ? Array.from({ length: countOf(count) }, (_, seed) => seed) : [Number(only)];
  for (const seed of seeds) {
    try {
      await property(createSeededRandom(seed), seed);
    } catch (error) {
      throw new Error(`seed ${seed} (replay with MOORING_SEED=${seed}): ${String(error)}`, { cause: error });
    }
  }
}

/** What the usual number of seeds came by at least, for as many as are run now: a property without it proved nothing. */
export function inProportion(least: number): number {
  return least * Math.min(1, share());
}

/** Of a list that grows at its end, as many as are run now: the newest. */
export function newest<T>(all: readonly T[]): readonly T[] {
  return all.slice(-countOf(all.length));
}

function countOf(usual: number): number {
  return Math.max(1, Math.ceil(usual * share()));
}

function share(): number {
  return process.env["MOORING_SEED"] === undefined ? Number(process.env["MOORING_SEEDS"] ?? 1) : 0;
}
