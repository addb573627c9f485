import { homedir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openStage, type Stage } from "./harness/stage.ts";
import { createBinaries, givenPrograms, Unavailable } from "./peers/binaries.ts";
import { KUBERNETES_PINS, type Pin } from "./peers/pins.ts";
import { line, saveOutcomes } from "./report.ts";
import { SUITES } from "./suites/all.ts";
import type { Outcome, Suite } from "./suites/suite.ts";

/**
 * `npm run conformance`: our processes beside the real ones. Exit 0 if every suite that could be run passed, 1 if one
 * failed, 2 misused. What could not be run is a line of its own.
 */
const USAGE = `usage: npm run conformance -- [--only NAME,NAME] [--all] [--minutes N] [--cache DIR] [--bin DIR]... [--write]
  --only     these suites: ${SUITES.map(({ name }) => name).join(", ")}
  --all      for every pinned Kubernetes (${KUBERNETES_PINS.map(({ version }) => version).join(", ")}), not only the newest
  --minutes  start no suite after that time (25; with --all 180)
  --cache    where the real programs are built and kept (~/.cache/mooring-conformance)
  --bin      a folder with programs that are used instead of built ones; may be given several times
  --write    write the table into docs/conformance.md
`;

const stages = new Set<Stage>();

async function main(): Promise<number> {
  const options = parse();
  if (options === undefined) {
    process.stderr.write(USAGE);
    return 2;
  }
  const deadlineMs = performance.now() + options.minutes * 60_000;
  const outcomes: Outcome[] = [];
  for (const pin of options.pins) {
    for (const suite of options.suites) {
      if (pin !== KUBERNETES_PINS[0] && !suite.everyVersion) continue;
      const late = performance.now() > deadlineMs;
      const outcome = late ? leftOut(suite, pin, options.minutes) : await perform(suite, { pin, ...options });
      outcomes.push(outcome);
      process.stdout.write(`${line(outcome)}\n`);
    }
  }
  const failed = outcomes.filter(({ result }) => result === "fail").length;
  const passed = outcomes.filter(({ result }) => result === "pass").length;
  process.stdout.write(`${passed} passed, ${failed} failed, ${outcomes.length - passed - failed} left out\n`);
  if (options.write) await saveOutcomes(outcomes, await givenPrograms(options.folders));
  return failed > 0 ? 1 : 0;
}

function parse() {
  try {
    const { values } = parseArgs({
      args: process.argv.slice(2).filter((argument) => argument !== "--"),
      options: {
        only: { type: "string" },
        all: { type: "boolean", default: false },
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
    const pins = values.all ? KUBERNETES_PINS : KUBERNETES_PINS.slice(0, 1);
    return { suites, pins, minutes, cache: values.cache, folders: values.bin, write: values.write };
  } catch {
    return undefined;
  }
}

function leftOut({ name, claim }: Suite, { version }: Pin, minutes: number): Outcome {
  const detail = `no time: ${minutes} minutes were over`;
  return { suite: name, claim, version, result: "unsupported", detail, seconds: 0 };
}

interface Setting {
  readonly pin: Pin;
  readonly cache: string;
  readonly folders: readonly string[];
}

async function perform(suite: Suite, { pin, cache, folders }: Setting): Promise<Outcome> {
  const { name, claim } = suite;
  const binaries = createBinaries({ kubernetes: pin, cache, folders });
  const version = await binaries.version();
  const stage = await openStage(name);
  stages.add(stage);
  const startedAtMs = performance.now();
  const end = (result: Outcome["result"], detail: string): Outcome => {
    const seconds = (performance.now() - startedAtMs - binaries.buildMs) / 1_000;
    return { suite: name, claim, version, result, detail, seconds };
  };
  try {
    return end("pass", await suite.run({ stage, binaries }));
  } catch (error) {
    if (error instanceof Unavailable) return end("unsupported", error.message);
    const obituary = await stage.obituary();
    const message = error instanceof Error ? error.message : String(error);
    return end("fail", obituary === "" ? message : `${message}; ${obituary}`);
  } finally {
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
