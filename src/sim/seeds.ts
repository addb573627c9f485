import { createSeededRandom } from "../base/seeded-random.ts";
import type { Random } from "../base/random.ts";

/**
 * Runs a property once a seed, one after the other. A failure names its seed and how to replay it alone:
 * `MOORING_SEED=17 npm run test:sim -- -t "name of the test"`. `MOORING_SEEDS` multiplies the count.
 */
export async function forSeeds(
  count: number,
  property: (random: Random, seed: number) => Promise<void> | void,
): Promise<void> {
  const only = process.env["MOORING_SEED"];
  const seeds =
    only === undefined ? Array.from({ length: count * multiplier() }, (_, seed) => seed) : [Number(only)];
  for (const seed of seeds) {
    try {
      await property(createSeededRandom(seed), seed);
    } catch (error) {
      throw new Error(`seed ${seed} (replay with MOORING_SEED=${seed}): ${String(error)}`, { cause: error });
    }
  }
}

function multiplier(): number {
  return Math.max(1, Number(process.env["MOORING_SEEDS"] ?? 1));
}
