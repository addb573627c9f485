import { blocksOf, unrunLinesOf } from "../../sim/branches.ts";
import { chooseActs, renderSteps } from "../../sim/choice.ts";
import { KNOWN, neverSeen, type Counts, type Coverage } from "../../sim/coverage.ts";
import { renderAct } from "../../sim/act.ts";
import type { Plan } from "../../sim/plan.ts";
import type { Progress, SearchResult, SeedReport } from "../../sim/search.ts";
import type { Shrunk } from "../../sim/shrink.ts";

/** `412 of 1000 seeds, 0 failed, 1.4 seeds/s, 872 simulated seconds a second`. */
export function formatProgress(progress: Progress): string {
  const { done, of, failed } = progress;
  return `${done} of ${of} seeds, ${failed} failed, ${rateOf(progress)}`;
}

function rateOf({ done, simulatedMs, tookMs }: Progress): string {
  const seconds = Math.max(tookMs, 1) / 1_000;
  return `${(done / seconds).toFixed(2)} seeds/s, ${Math.round(simulatedMs / 1_000 / seconds)} simulated seconds a second`;
}

/** `seed 1211: writers: node-1 writes to d3 while node-2 can`. */
export function formatFailed({ seed, violation = "" }: SeedReport): string {
  return `seed ${seed}: ${firstLineOf(violation)}`;
}

/** What came out, and what was met on the way. */
export function formatSearch(result: SearchResult): string {
  const { done, firstSeed, failures, tookMs, endedBy, coverage } = result;
  const took = `${(tookMs / 1_000).toFixed(0)} s`;
  const ended = endedBy === "all seeds" ? "" : `, ended by ${endedBy}`;
  const verdict = failures.length === 0 ? "ok" : `BROKEN: ${failures.length} seeds failed`;
  return [
    `${verdict}: ${done} seeds from ${firstSeed} on in ${took}, ${rateOf(result)}${ended}`,
    ...failures.map((failure) => `  ${formatFailed(failure)}`),
    "",
    ...formatCoverage(coverage),
    ...formatBranches(result),
  ].join("\n");
}

function formatCoverage(coverage: Coverage): string[] {
  const often = (counts: Counts) => Object.entries(counts).sort(([, a], [, b]) => b - a);
  const acts = often(coverage.acts);
  const answers = often(coverage.answers);
  const seen = (what: keyof Coverage) => KNOWN[what].length - neverSeen(coverage, what).length;
  return [
    `acts: ${seen("acts")} of ${KNOWN.acts.length} kinds; how often, and how often it found something to act upon:`,
    ...wrapped(acts.map(([kind, count]) => `${kind} ${count}/${coverage.effective[kind] ?? 0}`)),
    ...never(neverSeen(coverage, "acts")),
    `waiting reasons: ${seen("waits")} of ${KNOWN.waits.length}`,
    ...never(neverSeen(coverage, "waits")),
    `answers of why: ${seen("answers")} of ${KNOWN.answers.length} reasons; how often each was judged by what was broken:`,
    ...wrapped(answers.map(([reason, count]) => `${reason} ${count}`)),
    ...never(neverSeen(coverage, "answers")),
  ];
}

function formatBranches({ branches, branchSeeds, done }: SearchResult): string[] {
  if (branches === undefined) return ["plan branches: not measured, as there are no source maps here"];
  const files = Object.entries(branches);
  const lines = files.reduce((sum, [, file]) => sum + file.lines, 0);
  const unrun = files.reduce((sum, [, file]) => sum + unrunLinesOf(file), 0);
  const blocks = files.flatMap(([path, file]) =>
    blocksOf(file).map(({ line, column, text }) => `  ${path}:${line}:${column}  ${text.slice(0, 60)}`),
  );
  return [
    `plan branches${branchSeeds < done ? `, in ${branchSeeds} of the seeds` : ""}: ${lines - unrun} of ${lines} lines ran completely, ${blocks.length} blocks never did`,
    ...(blocks.length === 0 ? [] : ["  never seen:", ...blocks.map((block) => `  ${block}`)]),
  ];
}

function never(names: readonly string[]): string[] {
  return names.length === 0 ? [] : wrapped(["never seen:", names.join(", ")].join(" ").split(/(?<=,) /), " ");
}

const WIDTH = 100;

/** On lines of bounded width, indented. */
function wrapped(words: readonly string[], gap = ", "): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + gap.length + word.length > WIDTH) lines.push(`  ${word}`);
    else lines[lines.length - 1] = `${last}${gap}${word}`;
  }
  return lines;
}

export interface FailureStory {
  readonly plan: Plan;
  readonly first: SeedReport;
  readonly shrunk: Shrunk;
  /** Of the command that repeats it. */
  readonly flags: string;
}

/** The seed, what is broken, the steps that are needed for it, and the command that repeats it. */
export function formatFailure({ plan, first, shrunk, flags }: FailureStory): string {
  const { steps, violation, runs, isMinimal } = shrunk;
  const acts = chooseActs(plan, { only: steps });
  const how = isMinimal ? `${runs} runs` : `${runs} runs; there may be fewer`;
  return [
    `seed ${first.seed}: ${violation}`,
    `needs ${steps.length} of ${plan.length} steps (${how}):`,
    ...plan.flatMap(({ atMs }, index) => {
      const act = acts[index];
      if (act === undefined) return [];
      return [`${String(index).padStart(5)}  ${(atMs / 1_000).toFixed(3).padStart(9)} s  ${renderAct(act)}`];
    }),
    `replay: mooring sim --seed ${first.seed} --only ${renderSteps(steps)}${flags}`,
  ].join("\n");
}

export function searchToJson(result: SearchResult, shrunk: Shrunk | undefined): object {
  const { coverage, branches, ...figures } = result;
  return {
    ...figures,
    ...(shrunk && { shrunk: { ...shrunk, only: renderSteps(shrunk.steps) } }),
    coverage: {
      ...coverage,
      neverSeen: {
        acts: neverSeen(coverage, "acts"),
        waits: neverSeen(coverage, "waits"),
        answers: neverSeen(coverage, "answers"),
      },
      ...(branches && {
        blocksNeverSeen: Object.entries(branches).flatMap(([path, file]) =>
          blocksOf(file).map(({ line, column, text }) => ({ path, line, column, text })),
        ),
      }),
    },
  };
}

function firstLineOf(text: string): string {
  return text.split("\n", 1)[0] ?? text;
}
