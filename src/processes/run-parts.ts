import { withEither } from "../base/signals.ts";

/** What runs beside the work of a process, until that has ended. */
export interface Part {
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Runs `work` until the signal aborts, with its parts beside it: they are told to end only after it has, so that a
 * last event is sent and a last look finds a cache. A part that fails ends everything, and its error is thrown.
 */
export async function runWithParts(
  parts: readonly Part[],
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const failed = new AbortController();
  const running = Promise.allSettled(
    parts.map((part) =>
      part.run(over.signal).catch((error: unknown) => {
        failed.abort(error);
        throw error;
      }),
    ),
  );
  try {
    await withEither([signal, failed.signal], work);
  } finally {
    over.abort(new Error("the process is stopping"));
    await running;
  }
  for (const result of await running) if (result.status === "rejected") throw result.reason;
}
