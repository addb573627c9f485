import { parentPort, workerData } from "node:worker_threads";
import { startBlockCoverage } from "./block-coverage.ts";
import type { WorkerCoverage } from "./search.ts";
import type { ThreadAnswer, ThreadOptions, ThreadRequest } from "./threads.ts";

/** The thread of `threads.ts`: runs seeds that it is told, one after the other, and says at the end what they came by. */

const options = workerData as ThreadOptions;
const blocks = options.seesBranches ? startBlockCoverage() : undefined;
// Loaded only now, so that every line of it is seen.
const { CoverageObserver } = await import("./coverage.ts");
const { reportSeed } = await import("./report.ts");
const observer = new CoverageObserver();

parentPort?.on("message", (request: ThreadRequest) => void answer(request));

async function answer(request: ThreadRequest): Promise<void> {
  const reply: ThreadAnswer =
    request === "finish"
      ? { covered: finish() }
      : { report: await reportSeed(request.seed, options, observer) };
  parentPort?.postMessage(reply);
}

function finish(): WorkerCoverage {
  const branches = blocks?.take();
  return { coverage: observer.coverage, ...(branches && { branches }) };
}
