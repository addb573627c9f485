import type { Clock } from "../base/clock.ts";

/** A part of a process became ready. */
export interface ComponentReady {
  readonly component: string;
  readonly detail: string;
  readonly tookMs: number;
}

export type Report = (ready: ComponentReady) => void;

/** Runs one step of a start and reports it with the time it took. */
export async function step<T>(
  { clock, report }: { clock: Clock; report: Report },
  component: string,
  work: () => Promise<T>,
  describe: (result: T) => string,
): Promise<T> {
  const startedMs = clock.now();
  const result = await work();
  report({ component, detail: describe(result), tookMs: clock.now() - startedMs });
  return result;
}
