import { Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../durations.ts";

const FORMATS = ["text", "json", "svg"] as const;

export interface SimFlags {
  readonly seed?: number;
  readonly seeds?: number;
  readonly firstSeed?: number;
  readonly minutes: number;
  readonly nodes: number;
  readonly faults?: string;
  readonly only?: string;
  readonly story?: string;
  readonly jobs?: number;
  readonly for?: number;
  readonly keepGoing?: boolean;
  readonly output: (typeof FORMATS)[number];
}

/** Says what was wrong with the command line, and ends. */
export type Misused = (problem: string) => never;

/** Loaded when it runs: the simulator has every other room in it. */
async function run(flags: SimFlags, misused: Misused): Promise<void> {
  const { runSim } = await import("./sim-run.ts");
  await runSim(flags, misused);
}

export function simCommand(start: (flags: SimFlags, misused: Misused) => Promise<void> = run): Command {
  const command = new Command("sim").description(
    "run a simulated cluster of the real programs, with everything going wrong that a seed says",
  );
  return command
    .addOption(numberOption("seed <number>", "run this seed and print what happens", { min: 0 }))
    .addOption(numberOption("seeds <count>", "run so many seeds; the first that fails ends it", { min: 1 }))
    .addOption(numberOption("first-seed <number>", "where --seeds begins; without it, the time", { min: 0 }))
    .addOption(
      numberOption("minutes <minutes>", "simulated time in which things go wrong", {
        min: 1,
        max: 24 * 60,
      }).default(10),
    )
    .addOption(numberOption("nodes <count>", "nodes of the cluster", { min: 1, max: 100 }).default(3))
    .option(
      "--faults <kinds>",
      "kinds of acts to have, as kill,freeze, or to leave out, as -power-off,-drain",
    )
    .option("--only <steps>", "steps of the seed's plan to carry out, as 3,7,12; a failure lists them")
    .option("--story <volume>", "the life of one volume of --seed, as d3, as a sequence diagram")
    .addOption(
      numberOption("jobs <count>", "threads for --seeds; without it, one a core", { min: 1, max: 512 }),
    )
    .addOption(
      new Option("--for <duration>", "real time after which --seeds begins no further one").argParser(toMs),
    )
    .option("--keep-going", "go on with --seeds after a failure")
    .addOption(
      new Option("-o, --output <format>", "how to print it; svg is for --story")
        .choices(FORMATS)
        .default("text"),
    )
    .addHelpText("after", HELP)
    .action((flags: SimFlags) => {
      const problem = problemOf(flags);
      if (problem !== undefined) return command.error(`error: ${problem}`);
      return start(flags, (text) => command.error(`error: ${text}`));
    });
}

const HELP = `
API server, two controllers, attacher, companions and node agents run as they are shipped, on simulated time, disks and
network. A seed always gives the same run. Exit 0: nothing was broken, 1: something was.

Examples:
  mooring sim --seed 17
  mooring sim --seed 17 --only 3,7,12        what a failure is cut down to
  mooring sim --seed 17 --story d3           the life of one volume
  mooring sim --seed 17 --story d3 -o svg
  mooring sim --seeds 1000
  mooring sim --seeds 1000 --for 3m --first-seed 5000 --keep-going
  mooring sim --seeds 100 --faults kill,freeze,delete-pod
  mooring sim --seeds 100 --faults -power-off,-foreign-attachment -o json`;

function problemOf(flags: SimFlags): string | undefined {
  const { seed, seeds } = flags;
  if (seed === undefined && seeds === undefined)
    return "nothing to run: give --seed NUMBER for one run, or --seeds COUNT for a search";
  if (seed !== undefined && seeds !== undefined)
    return "--seed and --seeds exclude each other: --first-seed says where --seeds begins";
  const single = (["only", "story"] as const).find((flag) => flags[flag] !== undefined);
  if (seed === undefined && single !== undefined) return `--${single} is about one run: give --seed NUMBER`;
  const several = (
    [
      ["jobs", "jobs"],
      ["for", "for"],
      ["firstSeed", "first-seed"],
      ["keepGoing", "keep-going"],
    ] as const
  ).find(([key]) => flags[key] !== undefined);
  if (seeds === undefined && several !== undefined)
    return `--${several[1]} is about a search: give --seeds COUNT`;
  if (flags.output === "svg" && flags.story === undefined)
    return "--output svg draws one volume: give --story VOLUME, such as d3";
  return undefined;
}

function numberOption(
  flags: string,
  description: string,
  { min, max = Number.MAX_SAFE_INTEGER }: { readonly min: number; readonly max?: number },
): Option {
  return new Option(`--${flags}`, description).argParser((text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      const most = max === Number.MAX_SAFE_INTEGER ? `${min} or above` : `from ${min} to ${max}`;
      throw new InvalidArgumentError(`Give a whole number, ${most}.`);
    }
    return value;
  });
}

function toMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw new InvalidArgumentError("Give a duration such as 90s or 3m.");
  return ms;
}
