import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { brokenReport } from "./report.ts";
import type { SeedOptions, SeedReport, SeedRunner, WorkerCoverage } from "./search.ts";

/** What a thread is asked, one at a time. */
export type ThreadRequest = { readonly seed: number } | "finish";
export type ThreadAnswer = { readonly report: SeedReport } | { readonly covered: WorkerCoverage };

export interface ThreadOptions extends SeedOptions {
  /** Whether it sees which branches run: that takes a tenth of its speed. */
  readonly seesBranches: boolean;
}

export function coreCount(): number {
  return availableParallelism();
}

/**
 * A thread that runs seeds. What it answers for one is what any other would. An error that nobody caught ends a thread: it is
 * told of the seed at which it came, and the next seed gets another thread.
 */
export function startThread(options: ThreadOptions): SeedRunner {
  let worker = newWorker(options);
  const ask = (request: ThreadRequest) =>
    new Promise<ThreadAnswer>((resolve, reject) => {
      worker.removeAllListeners();
      worker.on("message", resolve);
      worker.on("error", (error: Error) => reject(error));
      worker.postMessage(request);
    });
  return {
    async run(seed) {
      try {
        return ((await ask({ seed })) as { report: SeedReport }).report;
      } catch (error) {
        await worker.terminate();
        worker = newWorker(options);
        return brokenReport(seed, error);
      }
    },
    async finish() {
      const { covered } = (await ask("finish")) as { covered: WorkerCoverage };
      await worker.terminate();
      return covered;
    },
  };
}

function newWorker(options: ThreadOptions): Worker {
  // The compiler rewrites the ends of imports only.
  const end = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
  return new Worker(new URL(`./search-thread${end}`, import.meta.url), {
    workerData: options,
    // A world makes 380 MB of garbage a seed; with 64 MB for what is young, of which V8 fills a third before it looks through it,
    // a tenth of the time went into that, and with 192 MB it is a fifteenth.
    resourceLimits: { maxYoungGenerationSizeMb: 192 },
  });
}
