import { runSeed, type Observer, type RunResult } from "./run.ts";
import type { SeedOptions, SeedReport } from "./search.ts";

/** One seed, and what is told of it. An error that nobody caught is one of ours, and counts. */
export async function reportSeed(
  seed: number,
  options: SeedOptions,
  observer?: Observer,
): Promise<SeedReport> {
  try {
    return toReport(await runSeed(seed, { ...options, ...(observer && { observer }) }));
  } catch (error) {
    return brokenReport(seed, error);
  }
}

/** Of a run that did not come to its end. */
export function brokenReport(seed: number, error: unknown): SeedReport {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { seed, hash: "", violation: `simulator: ${text}`, simulatedMs: 0, writes: 0 };
}

export function toReport({
  seed,
  hash,
  violations,
  violatedAtMs,
  simulatedMs,
  writes,
}: RunResult): SeedReport {
  const [violation] = violations;
  return {
    ...{ seed, hash, simulatedMs, writes },
    ...(violation !== undefined && { violation }),
    ...(violatedAtMs !== undefined && { violatedAtMs }),
  };
}

/** Which promise is broken: the text before the first colon. */
export function checkerOf(violation: string): string {
  return violation.split(":", 1)[0] ?? violation;
}
