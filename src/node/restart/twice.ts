import type { Clock } from "../../base/clock.ts";

/** What a disk refuses once it mostly gives the next time; what it refuses twice is left to whoever can do without. */
const PAUSE_MS = 1_000;

export async function twice<T>(clock: Clock, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch {
    await clock.sleep(PAUSE_MS);
    return work();
  }
}
