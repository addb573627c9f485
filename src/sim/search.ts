import type { Clock } from "../base/clock.ts";
import { addBranches, type Branches } from "./branches.ts";
import type { Choice } from "./choice.ts";
import { addCoverage, NO_COVERAGE, type Coverage } from "./coverage.ts";

/** What every seed of a search is run with. */
export interface SeedOptions {
  readonly durationMs?: number;
  readonly nodes?: number;
  readonly choice?: Choice;
}

/** What is told of a seed that was run; short, as there are thousands. */
export interface SeedReport {
  readonly seed: number;
  readonly hash: string;
  readonly violation?: string;
  readonly violatedAtMs?: number;
  readonly simulatedMs: number;
  readonly writes: number;
}

/** What one worker has come by in all its seeds. */
export interface WorkerCoverage {
  readonly coverage: Coverage;
  /** Undefined where it was not looked for, or cannot be told, as without source maps. */
  readonly branches?: Branches;
}

/** Runs seeds, one after the other: a thread, or something simpler in a test. */
export interface SeedRunner {
  run(seed: number): Promise<SeedReport>;
  finish(): Promise<WorkerCoverage>;
}

export interface SearchOptions {
  readonly firstSeed: number;
  readonly seeds: number;
  /** Real time after which no further seed is begun. */
  readonly forMs?: number;
  /** Whether it goes on after a failure. */
  readonly keepGoing?: boolean;
  /** No further seed is begun once it aborts; what was found is answered. */
  readonly signal?: AbortSignal;
  /** As soon as it is known; the answer has all of them again. */
  readonly onFailure?: (failure: SeedReport) => void;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly done: number;
  readonly of: number;
  readonly failed: number;
  readonly simulatedMs: number;
  readonly tookMs: number;
}

export interface SearchResult extends Progress {
  readonly firstSeed: number;
  /** Lowest seed first. */
  readonly failures: readonly SeedReport[];
  readonly endedBy: "all seeds" | "a failure" | "time" | "a signal";
  /** The trace hash of each seed: what another machine has to come to. */
  readonly hashes: Readonly<Record<number, string>>;
  readonly coverage: Coverage;
  readonly branches?: Branches;
  /** Of how many seeds these branches are: not every thread looks for them. */
  readonly branchSeeds: number;
}

/**
 * Seeds from the first on, handed to whoever is free. After a failure what is under way is let end, so that of the seeds
 * begun the lowest one that fails is told, whoever was faster.
 */
export async function search(
  { clock, runners }: { readonly clock: Pick<Clock, "now">; readonly runners: readonly SeedRunner[] },
  { firstSeed, seeds, forMs = Infinity, keepGoing = false, signal, onFailure, onProgress }: SearchOptions,
): Promise<SearchResult> {
  const startedMs = clock.now();
  const failures: SeedReport[] = [];
  const hashes: Record<number, string> = {};
  let next = firstSeed;
  let done = 0;
  let simulatedMs = 0;
  let endedBy: SearchResult["endedBy"] = "all seeds";
  const progress = (): Progress => ({
    ...{ done, of: seeds, failed: failures.length, simulatedMs },
    tookMs: clock.now() - startedMs,
  });

  function take(): number | undefined {
    if (next >= firstSeed + seeds) return undefined;
    if (signal?.aborted === true) endedBy = "a signal";
    else if (failures.length > 0 && !keepGoing) endedBy = "a failure";
    else if (clock.now() - startedMs >= forMs) endedBy = "time";
    else return next++;
    return undefined;
  }

  async function work(runner: SeedRunner): Promise<WorkerCoverage & { readonly ran: number }> {
    let ran = 0;
    for (let seed = take(); seed !== undefined; seed = take()) {
      const report = await runner.run(seed);
      ran++;
      done++;
      simulatedMs += report.simulatedMs;
      hashes[seed] = report.hash;
      if (report.violation !== undefined) {
        failures.push(report);
        onFailure?.(report);
      }
      onProgress?.(progress());
    }
    return { ...(await runner.finish()), ran };
  }

  const covered = await Promise.all(runners.map(work));
  const saw = covered.filter((worker) => worker.branches !== undefined);
  const branches = saw.map((worker) => worker.branches).filter((found) => found !== undefined);
  return {
    ...progress(),
    firstSeed,
    endedBy,
    hashes,
    failures: failures.sort((a, b) => a.seed - b.seed),
    coverage: covered.map((worker) => worker.coverage).reduce(addCoverage, NO_COVERAGE),
    branchSeeds: saw.reduce((sum, { ran }) => sum + ran, 0),
    ...(branches.length > 0 && { branches: branches.reduce(addBranches) }),
  };
}
