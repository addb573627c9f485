import type { Act } from "./act.ts";
import type { Plan } from "./plan.ts";

/** Some fields of an act with other values: a shorter time, a taint less. */
export type ActChanges = Readonly<Record<string, string | number | boolean>>;

export interface ChosenStep {
  /** Into the seed's own plan. */
  readonly index: number;
  readonly changes?: ActChanges;
}

/** What of a seed's plan is carried out; data, so that another thread and another day do the same. */
export interface Choice {
  /** Kinds of acts; undefined for all. */
  readonly kinds?: readonly string[];
  /** Steps; undefined for all. */
  readonly only?: readonly ChosenStep[];
}

/** Without these there is no volume to lose. */
const ALWAYS: readonly string[] = ["add-app"];

/** The act of each step, or undefined for one that is left out and still takes its place among the timers. */
export function chooseActs(plan: Plan, { kinds, only }: Choice): readonly (Act | undefined)[] {
  const chosen = only && new Map(only.map((step) => [step.index, step.changes] as const));
  return plan.map(({ act }, index) => {
    if (kinds !== undefined && !kinds.includes(act.kind)) return undefined;
    if (chosen === undefined) return act;
    return chosen.has(index) ? { ...act, ...chosen.get(index) } : undefined;
  });
}

/** Steps that a choice leaves, before any of them is left out by hand. */
export function stepsOf(plan: Plan, choice: Choice): readonly ChosenStep[] {
  if (choice.only !== undefined) return choice.only;
  return chooseActs(plan, choice).flatMap((act, index) => (act === undefined ? [] : [{ index }]));
}

/** Why a text is not understood; for whoever typed it. */
export class ChoiceError extends Error {
  override readonly name = "ChoiceError";
}

/** `kill,freeze` are only these beside what makes volumes; `-power-off` is all but that. */
export function parseKinds(text: string, known: readonly string[]): readonly string[] {
  const words = text.split(",").map((word) => word.trim());
  const names = words.map((word) => word.replace(/^-/, ""));
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new ChoiceError(`"${unknown}" is no kind of act: give some of ${known.join(", ")}`);
  const without = words.filter((word) => word.startsWith("-"));
  if (without.length !== 0 && without.length !== words.length)
    throw new ChoiceError(
      `"${text}" mixes both forms: give the kinds to have, or each with a minus to leave out`,
    );
  if (without.length === 0) return known.filter((kind) => ALWAYS.includes(kind) || names.includes(kind));
  return known.filter((kind) => !names.includes(kind));
}

/** `3,7:forMs=1200:taint=false,12`: steps of the seed's plan, some with other values. */
export function parseSteps(text: string): readonly ChosenStep[] {
  return text.split(",").map((word) => {
    const [index = "", ...changes] = word.trim().split(":");
    if (!/^\d+$/.test(index))
      throw new ChoiceError(`"${word}" is no step: give numbers such as 3,7,12, as a failure lists them`);
    if (changes.length === 0) return { index: Number(index) };
    return { index: Number(index), changes: Object.fromEntries(changes.map(parseChange)) };
  });
}

function parseChange(text: string): readonly [string, string | number | boolean] {
  const [, key, value] = /^(\w+)=(.+)$/.exec(text) ?? [];
  if (key === undefined || value === undefined)
    throw new ChoiceError(`"${text}" changes nothing: write a field and its value, such as forMs=1200`);
  if (value === "true" || value === "false") return [key, value === "true"];
  return [key, /^[\d.]+$/.test(value) ? Number(value) : value];
}

/** The opposite of `parseSteps`. */
export function renderSteps(steps: readonly ChosenStep[]): string {
  return steps
    .map(({ index, changes = {} }) =>
      [index, ...Object.entries(changes).map(([key, value]) => `${key}=${value}`)].join(":"),
    )
    .join(",");
}

/** What is wrong with steps for this plan; undefined where each is there and has the fields that are changed. */
export function problemOfSteps(plan: Plan, steps: readonly ChosenStep[]): string | undefined {
  for (const { index, changes = {} } of steps) {
    const step = plan[index];
    if (step === undefined) return `step ${index} is not in the plan: it has 0 to ${plan.length - 1}`;
    const { kind, ...fields } = step.act;
    const unknown = Object.keys(changes).find((key) => !(key in fields));
    if (unknown !== undefined)
      return `step ${index} (${kind}) has no ${unknown}: it has ${Object.keys(fields).join(", ")}`;
  }
  return undefined;
}
