import type { Clock } from "../base/clock.ts";
import type { ActChanges, ChosenStep } from "./choice.ts";
import type { Act } from "./act.ts";
import type { Plan } from "./plan.ts";
import { checkerOf } from "./report.ts";

/** What a run of some steps showed. */
export interface Attempt {
  readonly violation?: string;
  readonly violatedAtMs?: number;
}

export interface ShrinkDeps {
  readonly clock: Pick<Clock, "now">;
  /** Runs these steps of the plan, up to then. */
  readonly run: (steps: readonly ChosenStep[], untilMs: number) => Promise<Attempt>;
}

export interface Failing {
  readonly plan: Plan;
  /** Those that were carried out. */
  readonly steps: readonly ChosenStep[];
  readonly violation: string;
  readonly violatedAtMs: number;
  /** How long things happen; what is broken later is broken at rest. */
  readonly durationMs: number;
}

export interface ShrinkOptions {
  readonly runsMax?: number;
  readonly forMs?: number;
  readonly onProgress?: (progress: { readonly steps: number; readonly runs: number }) => void;
}

export interface Shrunk {
  readonly steps: readonly ChosenStep[];
  readonly violation: string;
  readonly runs: number;
  /** Whether nothing more could be left out, as opposed to no more being tried. */
  readonly isMinimal: boolean;
}

/** How much later than in the whole plan a part of it may break the same. */
const LATER_MS = 60_000;

/**
 * A failing plan cut down to what is needed: what comes after the failure, then halves, quarters and so on to single steps
 * (Zeller's delta debugging), then shorter times and simpler acts. A failure of the same checker is the same failure.
 */
export async function shrink(
  { clock, run }: ShrinkDeps,
  failing: Failing,
  { runsMax = 200, forMs = 180_000, onProgress }: ShrinkOptions = {},
): Promise<Shrunk> {
  const { plan, violatedAtMs, durationMs } = failing;
  const deadlineMs = clock.now() + forMs;
  const checker = checkerOf(failing.violation);
  // What breaks at rest needs the rest; what breaks before is looked for only about as long as it took.
  const untilMs = violatedAtMs < durationMs ? violatedAtMs + LATER_MS : Infinity;
  let best = failing.steps;
  let violation = failing.violation;
  let runs = 0;
  const mayGoOn = () => runs < runsMax && clock.now() < deadlineMs;

  /** Takes the steps over if they fail in the same way. */
  async function tryOut(steps: readonly ChosenStep[]): Promise<boolean> {
    if (!mayGoOn()) return false;
    runs++;
    const attempt = await run(steps, untilMs);
    const isSame = attempt.violation !== undefined && checkerOf(attempt.violation) === checker;
    if (isSame) {
      best = steps;
      violation = attempt.violation ?? violation;
    }
    onProgress?.({ steps: best.length, runs });
    return isSame;
  }

  const before = best.filter(({ index }) => (plan[index]?.atMs ?? 0) <= violatedAtMs);
  if (before.length < best.length) await tryOut(before);
  for (let parts = 2; best.length > 1 && mayGoOn();) {
    if (await withoutOnePart(parts)) parts = Math.max(2, parts - 1);
    else if (parts >= best.length) break;
    else parts = Math.min(best.length, parts * 2);
  }
  for (let at = 0; at < best.length; at++) await simplify(at);
  return { steps: best, violation, runs, isMinimal: mayGoOn() };

  async function withoutOnePart(parts: number): Promise<boolean> {
    const size = Math.ceil(best.length / parts);
    for (let from = 0; from < best.length; from += size)
      if (await tryOut([...best.slice(0, from), ...best.slice(from + size)])) return true;
    return false;
  }

  async function simplify(at: number): Promise<void> {
    const act = plan[best[at]?.index ?? -1]?.act;
    for (const change of act === undefined ? [] : simplerThan(act)) {
      const step = best[at];
      if (step === undefined) return;
      await tryOut(best.with(at, { index: step.index, changes: { ...step.changes, ...change } }));
    }
  }
}

const SHORT_MS = 100;

/** One change each, the ones that say most first; later ones are tried on top of those that worked. */
function simplerThan(act: Act): readonly ActChanges[] {
  const fields: Readonly<Record<string, unknown>> = { ...act };
  const changes: ActChanges[] = [];
  // Longest last: the shortest time that still fails is what is kept.
  if (typeof fields["forMs"] === "number")
    for (const forMs of [fields["forMs"] / 2, fields["forMs"] / 10, SHORT_MS].map(Math.round))
      if (forMs >= SHORT_MS && forMs < fields["forMs"]) changes.push({ forMs });
  for (const [key, value] of Object.entries(fields)) if (value === true) changes.push({ [key]: false });
  if (fields["state"] === "half-open") changes.push({ state: "cut" });
  if (fields["mode"] !== undefined && fields["mode"] !== "ReadWriteOnce")
    changes.push({ mode: "ReadWriteOnce" });
  if (fields["storageClass"] !== undefined && fields["storageClass"] !== "san")
    changes.push({ storageClass: "san" });
  return changes;
}
