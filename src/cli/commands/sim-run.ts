import { createSystemClock } from "../../base/system-clock.ts";
import {
  ChoiceError,
  parseKinds,
  parseSteps,
  problemOfSteps,
  stepsOf,
  type Choice,
} from "../../sim/choice.ts";
import { shutdownSignal } from "../../processes/shutdown.ts";
import { ACT_KINDS } from "../../sim/draws.ts";
import { planOf, runSeed, type RunOptions } from "../../sim/run.ts";
import { toReport } from "../../sim/report.ts";
import { search, type SearchResult, type SeedOptions, type SeedReport } from "../../sim/search.ts";
import { shrink, type Shrunk } from "../../sim/shrink.ts";
import { storyOf } from "../../sim/story.ts";
import { renderStory } from "../../sim/story-text.ts";
import { renderStorySvg } from "../../sim/story-svg.ts";
import { coreCount, startThread } from "../../sim/threads.ts";
import { renderLine, type TraceLine } from "../../sim/trace.ts";
import { WaitLines } from "../../sim/wait-lines.ts";
import { formatFailed, formatFailure, formatProgress, formatSearch, searchToJson } from "../output/sim.ts";
import { createLinePrinter, printLine } from "../output/streams.ts";
import type { Misused, SimFlags } from "./sim.ts";

const clock = createSystemClock();

/** `mooring sim`: exit 0 where nothing was broken, 1 where something was. */
export async function runSim(flags: SimFlags, misused: Misused): Promise<void> {
  const options = readOptions(flags, misused);
  const isBroken =
    flags.seed === undefined
      ? await runMany(flags, options)
      : await runOne(flags.seed, flags, options, misused);
  if (isBroken) process.exitCode = 1;
}

function readOptions({ faults, only, minutes, nodes }: SimFlags, misused: Misused): SeedOptions {
  const choice: Choice = {
    ...(faults !== undefined && {
      kinds: orMisused("--faults", () => parseKinds(faults, ACT_KINDS), misused),
    }),
    ...(only !== undefined && { only: orMisused("--only", () => parseSteps(only), misused) }),
  };
  return { durationMs: minutes * 60_000, nodes, choice };
}

function orMisused<T>(flag: string, read: () => T, misused: Misused): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ChoiceError) return misused(`${flag}: ${error.message}`);
    throw error;
  }
}

async function runOne(
  seed: number,
  flags: SimFlags,
  options: SeedOptions,
  misused: Misused,
): Promise<boolean> {
  const { output, story } = flags;
  const wrong = problemOfSteps(planOf(seed, options), options.choice?.only ?? []);
  if (wrong !== undefined) return misused(`--only: ${wrong}`);
  const isTold = output === "text" && story === undefined;
  const print = createLinePrinter(process.stdout, () => process.exit(0));
  if (isTold) print(`seed ${seed}`);
  const observing: Pick<RunOptions, "observer" | "onLine"> = isTold
    ? { observer: new WaitLines(), onLine: (line: TraceLine) => print(renderLine(line)) }
    : {};
  const startedMs = clock.now();
  const result = await runSeed(seed, { ...options, logs: true, ...observing });
  const tookMs = clock.now() - startedMs;
  const report = toReport(result);
  if (story !== undefined) {
    const volumes = [...new Set(result.lines.flatMap(({ about }) => about?.volume ?? []))];
    const known = volumes
      .filter((name) => /^d\d+$/.test(name))
      .sort((a, b) => Number(a.slice(1)) - Number(b.slice(1)));
    if (!known.includes(story))
      return misused(`--story: there is no volume ${story} in seed ${seed}: give one of ${known.join(", ")}`);
    const told = storyOf(result.lines, { seed, volume: story });
    if (output === "json") printLine(process.stdout, JSON.stringify(told, null, 2));
    else printLine(process.stdout, output === "svg" ? renderStorySvg(told) : renderStory(told));
    return report.violation !== undefined;
  }
  if (output === "json")
    printLine(process.stdout, JSON.stringify({ ...report, plan: result.plan, lines: result.lines }, null, 2));
  else print(summaryOf(report, { tookMs, flags }));
  return report.violation !== undefined;
}

function summaryOf(
  { seed, hash, violation, simulatedMs, writes }: SeedReport,
  { tookMs, flags }: { readonly tookMs: number; readonly flags: SimFlags },
): string {
  const verdict = violation === undefined ? `ok: seed ${seed}` : `BROKEN: seed ${seed}: ${violation}`;
  const figures = `${Math.round(simulatedMs / 1_000)} simulated seconds in ${(tookMs / 1_000).toFixed(1)} s, ${writes} writes read back`;
  const lines = [verdict, `trace ${hash}, ${figures}`];
  if (violation !== undefined && flags.only === undefined)
    lines.push(`which steps it needs: mooring sim --seeds 1 --first-seed ${seed}${moreFlags(flags)}`);
  return lines.join("\n");
}

async function runMany(flags: SimFlags, options: SeedOptions): Promise<boolean> {
  const { seeds = 1, jobs = coreCount(), output, keepGoing } = flags;
  // Seconds: every run of CI looks where none has looked before.
  const firstSeed = flags.firstSeed ?? Math.floor(clock.wall().getTime() / 1_000);
  const tell = createTeller();
  tell.line(
    `seeds ${firstSeed} to ${firstSeed + seeds - 1}: mooring sim --seeds ${seeds} --first-seed ${firstSeed}${moreFlags(flags)}`,
  );
  // One that looks is enough: threads take their seeds from one line, so that its are as good as any.
  const runners = Array.from({ length: Math.min(jobs, seeds) }, (_, at) =>
    startThread({ ...options, seesBranches: at === 0 }),
  );
  const result = await search(
    { clock, runners },
    {
      ...{ firstSeed, seeds },
      ...(flags.for !== undefined && { forMs: flags.for }),
      ...(keepGoing !== undefined && { keepGoing }),
      signal: shutdownSignal(),
      onFailure: (failure) => tell.line(formatFailed(failure)),
      onProgress: (progress) => tell.progress(formatProgress(progress)),
    },
  );
  tell.end();
  const [first] = result.failures;
  const isShrunk = first !== undefined && result.endedBy !== "a signal";
  const shrunk = isShrunk ? await shrinkSeed(first, options, tell) : undefined;
  tell.end();
  if (output === "json") printLine(process.stdout, JSON.stringify(searchToJson(result, shrunk), null, 2));
  else printLine(process.stdout, tellResult(result, shrunk, flags, options));
  return first !== undefined;
}

function tellResult(
  result: SearchResult,
  shrunk: Shrunk | undefined,
  flags: SimFlags,
  options: SeedOptions,
): string {
  const [first] = result.failures;
  const parts = [formatSearch(result)];
  if (first !== undefined && shrunk !== undefined)
    parts.push(formatFailure({ plan: planOf(first.seed, options), first, shrunk, flags: moreFlags(flags) }));
  return parts.join("\n\n");
}

/** What changes the run of a seed, for a command that repeats it. */
function moreFlags({ minutes, nodes, faults }: SimFlags): string {
  return [
    ...(minutes === 10 ? [] : [` --minutes ${minutes}`]),
    ...(nodes === 3 ? [] : [` --nodes ${nodes}`]),
    ...(faults === undefined ? [] : [` --faults ${faults}`]),
  ].join("");
}

async function shrinkSeed(
  { seed, violation = "", violatedAtMs }: SeedReport,
  options: SeedOptions,
  tell: Teller,
): Promise<Shrunk | undefined> {
  if (violatedAtMs === undefined) return undefined;
  const plan = planOf(seed, options);
  const { durationMs = 600_000, choice = {} } = options;
  const steps = stepsOf(plan, choice);
  return shrink(
    {
      clock,
      run: async (only, untilMs) =>
        toReport(await runSeed(seed, { ...options, untilMs, choice: { ...choice, only } })),
    },
    { plan, steps, violation, violatedAtMs, durationMs },
    {
      onProgress: ({ steps: left, runs }) =>
        tell.progress(`seed ${seed} failed; cut down to ${left} of ${plan.length} steps in ${runs} runs`),
    },
  );
}

interface Teller {
  line(text: string): void;
  progress(text: string): void;
  end(): void;
}

/** On a terminal one line is written over; elsewhere there is one every 10 s. */
function createTeller(stream = process.stderr): Teller {
  let toldMs = clock.now();
  let isOpen = false;
  return {
    line(text) {
      this.end();
      stream.write(`${text}\n`);
    },
    progress(text) {
      if (!stream.isTTY && clock.now() - toldMs < 10_000) return;
      toldMs = clock.now();
      isOpen = stream.isTTY;
      stream.write(stream.isTTY ? `\r${text}\u001b[K` : `${text}\n`);
    },
    end() {
      if (isOpen) stream.write("\n");
      isOpen = false;
    },
  };
}
