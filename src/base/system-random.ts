import { randomBytes } from "node:crypto";
import type { Random } from "./random.ts";
import { createSeededRandom } from "./seeded-random.ts";

/** A different stream in every process, seeded with 128 bits from the operating system. */
export function createSystemRandom(): Random {
  return createSeededRandom(randomBytes(16).toString("hex"));
}
