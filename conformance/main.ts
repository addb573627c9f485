import { homedir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openStage, type Stage } from "./harness/stage.ts";
import { createBinaries, extraFolder, givenPrograms, Unavailable } from "./peers/binaries.ts";
import { KUBERNETES_PINS, type Pin } from "./peers/pins.ts";
import { SPEC_LISTS } from "./e2e/lists.ts";
import { line, saveOutcomes, saveSpecs } from "./report.ts";
import { SUITES } from "./suites/all.ts";
import { PATIENCE, type Outcome, type Suite } from "./suites/suite.ts";

/**
 * `npm run conformance`: our processes beside the real ones. Exit 0 if every suite that could be run passed, 1 if one
 * failed, 2 misused. What could not be run is a line of its own.
 */
const USAGE = `usage: npm run conformance -- [--only NAME,NAME] [--all] [--kubernetes VERSION] [--minutes N] [--cache DIR] [--bin DIR]... [--write]
  --only        these suites: ${SUITES.map(({ name }) => name).join(", ")}
  --all         every suite for every pinned Kubernetes: ${KUBERNETES_PINS.map(({ version }) => version).join(", ")}
  --kubernetes  one of them, instead of the newest
  --minutes     be done by then (25; with --all 180): builds get three quarters of it, and what does not fit is left out
  --cache       where the real programs are built and kept (~/.cache/mooring-conformance)
  --bin         a folder with programs that are used instead of built ones; may be given several times
  --write       write the table into docs/conformance.md
`;

const stages = new Set<Stage>();

/** Of the time, at most; a run of all suites takes 12 minutes when nothing has to be built, 20 with the slow one. */
const BUILDS_SHARE = 0.75;

async function main(): Promise<number> {
  const options = parse();
  if (options === undefined) {
    process.stderr.write(USAGE);
    return 2;
  }
  const { minutes, suites, pins } = options;
  const startedAtMs = performance.now();
  const msLeft = (share: number) => startedAtMs + minutes * 60_000 * share - performance.now();
  const outcomes: Outcome[] = [];
  for (const pin of pins) {
    for (const suite of suites) {
      if (pin !== pins[0] && !suite.everyVersion) continue;
      const setting = { pin, ...options, buildMsLeft: () => msLeft(BUILDS_SHARE), msLeft: () => msLeft(1) };
      const outcome = await perform(suite, setting);
      outcomes.push(outcome);
      process.stdout.write(`${line(outcome)}\n`);
    }
  }
  const failed = outcomes.filter(({ result }) => result === "fail").length;
  const passed = outcomes.filter(({ result }) => result === "pass").length;
  process.stdout.write(`${passed} passed, ${failed} failed, ${outcomes.length - passed - failed} left out\n`);
  if (options.write) {
    await saveOutcomes(outcomes, await givenPrograms([...options.folders, extraFolder(options.cache)]));
    await saveSpecs(SPEC_LISTS, KUBERNETES_PINS[0].version);
  }
  return failed > 0 ? 1 : 0;
}

function parse() {
  try {
    const { values } = parseArgs({
      args: process.argv.slice(2).filter((argument) => argument !== "--"),
      options: {
        only: { type: "string" },
        all: { type: "boolean", default: false },
        kubernetes: { type: "string" },
        minutes: { type: "string" },
        cache: { type: "string", default: join(homedir(), ".cache", "mooring-conformance") },
        bin: { type: "string", multiple: true, default: [] },
        write: { type: "boolean", default: false },
      },
    });
    const wanted = values.only?.split(",");
    const suites = SUITES.filter(({ name }) => wanted?.includes(name) ?? true);
    if (wanted !== undefined && suites.length !== wanted.length) return undefined;
    const minutes = Number(values.minutes ?? (values.all ? 180 : 25));
    if (!(minutes > 0)) return undefined;
    const pins = KUBERNETES_PINS.filter(
      (pin) => values.all || pin.version === (values.kubernetes ?? KUBERNETES_PINS[0].version),
    );
    if (pins.length === 0) return undefined;
    return { suites, pins, minutes, cache: values.cache, folders: values.bin, write: values.write };
  } catch {
    return undefined;
  }
}

interface Setting {
  readonly pin: Pin;
  readonly minutes: number;
  readonly cache: string;
  readonly folders: readonly string[];
  readonly buildMsLeft: () => number;
  readonly msLeft: () => number;
}

async function perform(suite: Suite, setting: Setting): Promise<Outcome> {
  const { name, claim, usualSeconds } = suite;
  const { pin, minutes, msLeft } = setting;
  const binaries = createBinaries({ ...setting, kubernetes: pin });
  const version = await binaries.version();
  const startedAtMs = performance.now();
  const end = (result: Outcome["result"], detail: string): Outcome => {
    const seconds = (performance.now() - startedAtMs - binaries.buildMs) / 1_000;
    return { suite: name, claim, version, result, detail, seconds };
  };
  if (msLeft() < usualSeconds * PATIENCE * 1_000)
    return end("unsupported", `no time: too little is left of ${minutes} minutes`);
  const stage = await openStage(name);
  stages.add(stage);
  const noTime = `no time: stopped as ${minutes} minutes were over`;
  const timer = setTimeout(() => stage.giveUp(noTime), msLeft());
  try {
    return end("pass", await suite.run({ stage, binaries }));
  } catch (error) {
    if (error instanceof Unavailable) return end("unsupported", error.message);
    if (stage.signal.reason === noTime) return end("unsupported", noTime);
    const obituary = await stage.obituary();
    const message = error instanceof Error ? error.message : String(error);
    return end("fail", obituary === "" ? message : `${message}; ${obituary}`);
  } finally {
    clearTimeout(timer);
    await stage.close();
    stages.delete(stage);
  }
}

/** What was started is ended, whoever asks for it. */
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  process.once(signal, () => {
    void Promise.all([...stages].map((stage) => stage.close())).finally(() => process.exit(code));
  });
}

process.exitCode = await main();
