import type { Random } from "../base/random.ts";
import type { Act, ActFields } from "./act.ts";
import { drawAct, drawApp, type DrawOptions } from "./draws.ts";

export interface Step {
  readonly atMs: number;
  readonly act: Act;
}

export type Plan = readonly Step[];

export interface PlanOptions extends DrawOptions {
  /** How long things happen and go wrong. */
  readonly durationMs: number;
  /** Between two acts, on the average. */
  readonly everyMs?: number | undefined;
  /** Values that every act of a kind has, instead of those that were drawn. */
  readonly fields?: ActFields | undefined;
}

const EVERY_MS = 12_000;
/** So long the cluster is left alone at first. */
const QUIET_MS = 5_000;

/** A plan of one seed. */
export function generatePlan(random: Random, options: PlanOptions): Plan {
  const { durationMs, apps, everyMs = EVERY_MS, fields = {} } = options;
  const steps: Step[] = [];
  for (let at = 0; at < apps; at++)
    steps.push({
      atMs: QUIET_MS + random.int(20_000),
      act: { ...drawApp(random, `app${at}`, options), ...fields["add-app"] },
    });
  let next = apps;
  for (let atMs = QUIET_MS; ;) {
    atMs += random.float() * 2 * everyMs;
    if (atMs >= durationMs) break;
    const act = drawAct(random, options, () => `app${next++}`);
    steps.push({ atMs: Math.round(atMs), act: { ...act, ...fields[act.kind] } as Act });
  }
  return steps.sort((a, b) => a.atMs - b.atMs);
}
