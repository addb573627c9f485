import type { ReportedWait } from "../reported-waits.ts";
import type { Facts } from "./facts.ts";

/** What speaks against a reason that is shown; undefined where nothing does. */
export type Judge = (wait: ReportedWait, facts: Facts) => string | undefined;

/** How long a call to a driver, or a look at the kernel, may be late by itself: drivers take up to 30 s a call in a bad run. */
const LATE_MS = 30_000;

export const isOver: Judge = ({ leftMs }) =>
  leftMs === undefined || leftMs > 0 ? undefined : "the time that it names is over";

/** Of what a program gives up after `ms`, unless the machine that it asks does not answer at all. */
export function notLongerThan(ms: number): Judge {
  return ({ forMs, node }, facts) =>
    forMs <= ms + LATE_MS || facts.hangs(node)
      ? undefined
      : `it is given up after ${ms / 1_000} s and has lasted ${Math.round(forMs / 1_000)}`;
}

export const requestUnderWay: Judge = ({ process }, facts) =>
  facts.requestsUnderWay(process) > 0 ? undefined : "no request of the process is under way";

/** Nothing of this world brings it about. */
export function never(why: string): Judge {
  return () => why;
}

/** The object that is named must be one that can be read. */
export function unless(holds: boolean, contradiction: string): string | undefined {
  return holds ? undefined : contradiction;
}
