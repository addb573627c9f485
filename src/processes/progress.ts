import type { Clock } from "../base/clock.ts";

/** A part of a process became ready. */
export interface ComponentReady {
  readonly component: string;
  readonly detail: string;
  readonly tookMs: number;
}

export type Report = (ready: ComponentReady) => void;

export interface StepDeps {
  readonly clock: Clock;
  readonly report: Report;
  /** Called for a part that takes longer than a person likes to look at nothing, once a second. */
  readonly slow?: ((component: string, sinceMs: number) => void) | undefined;
}

const SLOW_MS = 1_000;

/** Runs one step of a start and reports it with the time it took. */
export async function step<T>(
  { clock, report, slow }: StepDeps,
  component: string,
  work: () => Promise<T>,
  describe: (result: T) => string,
): Promise<T> {
  const startedMs = clock.now();
  const sinceMs = () => clock.now() - startedMs;
  const ticking = new AbortController();
  if (slow) void tick(clock, () => slow(component, sinceMs()), ticking.signal);
  try {
    const result = await work();
    report({ component, detail: describe(result), tookMs: sinceMs() });
    return result;
  } finally {
    ticking.abort();
  }
}

async function tick(clock: Clock, say: () => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(SLOW_MS, signal).then(say, () => undefined);
  }
}
