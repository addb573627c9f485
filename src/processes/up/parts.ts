import { abortReason } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";

/** Everything that runs in one process, started one after the other and ended in reverse. */
export interface Parts {
  /** Runs until everything ends. One that ends by itself ends the whole: half a cluster would only look like one. */
  run(name: string, work: (signal: AbortSignal) => Promise<void>): void;
  /** Something to do at the end, after all that was started later has ended. */
  atEnd(name: string, work: () => Promise<void>): void;
  /** Aborts when a part failed or ended by itself. */
  readonly failed: AbortSignal;
  stop(): Promise<void>;
}

interface Ending {
  readonly name: string;
  readonly end: () => Promise<void>;
}

/** `unwanted` ends a start that is under way: whoever waits for `failed` is told. */
export function createParts(log: Logger, unwanted: AbortSignal = new AbortController().signal): Parts {
  const endings: Ending[] = [];
  const failed = new AbortController();
  let stopping = false;
  unwanted.addEventListener("abort", () => failed.abort(abortReason(unwanted)), { once: true });

  async function watch(name: string, running: Promise<void>): Promise<void> {
    try {
      await running;
      if (!stopping) failed.abort(new Error(`${name} ended by itself`));
    } catch (error) {
      log.error("a part failed", { part: name, error });
      if (!stopping) failed.abort(new Error(`${name} failed: ${messageOf(error)}`, { cause: error }));
    }
  }

  return {
    failed: failed.signal,
    run(name, work) {
      // A start that was called off may come this far before it notices.
      if (stopping) throw new Error(`${name} was not started: the process is stopping`);
      const over = new AbortController();
      const running = watch(name, work(over.signal));
      endings.push({
        name,
        async end() {
          over.abort(new Error("the process is stopping"));
          await running;
        },
      });
    },
    atEnd(name, end) {
      if (stopping)
        void end().catch((error: unknown) => log.error("a part did not end cleanly", { part: name, error }));
      else endings.push({ name, end });
    },
    async stop() {
      stopping = true;
      for (const { name, end } of endings.splice(0).reverse()) {
        try {
          await end();
        } catch (error) {
          log.error("a part did not end cleanly", { part: name, error });
        }
      }
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
