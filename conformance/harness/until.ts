import { setTimeout as sleep } from "node:timers/promises";

const LOOK_EVERY_MS = 100;

/**
 * Asks until there is an answer. Errors on the way count as no answer: a server that is being restarted refuses, and that
 * is what some suites are about. The last one is told when time is up. Once `signal` is aborted nobody will answer any
 * more, and its reason is thrown.
 */
export async function until<T>(
  what: string,
  withinMs: number,
  ask: () => Promise<T | undefined | false>,
  signal?: AbortSignal,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  let last: string;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      last = "not yet";
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (signal?.aborted) throw new Error(`${what}: given up, ${String(signal.reason)}`);
    if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs / 1_000} s (${last})`);
    await sleep(LOOK_EVERY_MS);
  }
}
