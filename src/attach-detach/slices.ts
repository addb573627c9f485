import type { Clock } from "../base/clock.ts";

/** Objects a turn of the event loop: a walk over 1,000,000 delays nothing else by more than a few milliseconds. */
const SLICE = 500;

/** Walks all of `items`, letting others have their turn in between. What is added meanwhile may or may not be seen. */
export async function inSlices<T>(
  clock: Clock,
  items: Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => void | Promise<void>,
): Promise<void> {
  let done = 0;
  for (const item of items) {
    const pending = work(item);
    // Awaited only where there is something to wait for: most have nothing, and a turn for each would cost more.
    if (pending) await pending;
    if (++done % SLICE === 0) await clock.sleep(0, signal);
  }
}
