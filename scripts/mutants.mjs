// `npm run mutants`: changes one safety rule of the product at a time and lets the simulator find it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./build.mjs";
import { modulesOf } from "./mutants/apply.mjs";
import { mutants, profiles } from "./mutants/list.mjs";
import { checkerOf, readVerdicts, renderPage } from "./mutants/page.mjs";

/** A process is replaced after so many seeds: what killed simulated processes wait for is never let go. */
const SEEDS_A_PROCESS = 60;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    seeds: { type: "string", default: "2000" },
    from: { type: "string", default: "1" },
    minutes: { type: "string", default: "30" },
    jobs: { type: "string", default: String(availableParallelism()) },
    write: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
  },
});
const seedsMax = Number(values.seeds);
const minutesMax = Number(values.minutes);

const chosen = choose(values.only?.split(","));
// All of them, before any is run: one that no longer applies is told at once.
const compiled = new Map(
  mutants.map(({ id, changes, without = [] }) => [
    id,
    {
      mutant: modulesOf({ id, changes: [...without, ...changes] }),
      control: modulesOf({ id, changes: without }),
    },
  ]),
);
const verdicts = new Map();
const waiting = [...chosen];
const controls = new Map();
await Promise.all(Array.from({ length: Number(values.jobs) }, work));
const survived = chosen.filter(({ id }) => verdicts.get(id).kind !== "caught");
console.log(`${chosen.length - survived.length} of ${chosen.length} caught`);
process.exit(survived.length > 0 ? 1 : 0);

function choose(ids) {
  const unknown = ids?.filter((id) => !mutants.some((mutant) => mutant.id === id)) ?? [];
  if (unknown.length > 0) {
    process.stderr.write(`mutants: there is no mutant ${unknown.join(", ")}\n`);
    process.exit(2);
  }
  return mutants.filter(({ id }) => ids?.includes(id) ?? true);
}

async function work() {
  for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
    const startedMs = Date.now();
    const verdict = await judge(mutant);
    verdicts.set(mutant.id, verdict);
    if (values.write) writePage();
    const took = `${((Date.now() - startedMs) / 1_000).toFixed(1)} s`.padStart(8);
    const seeds = `${verdict.seeds} ${verdict.seeds === 1 ? "seed" : "seeds"}`.padStart(10);
    const checker = (verdict.checker ?? "").padEnd(14);
    console.log(`${verdict.kind.padEnd(8)}  ${checker}  ${seeds}  ${took}  ${mutant.id}`);
    if (values.verbose && verdict.violation)
      console.log(`          seed ${verdict.seed}: ${verdict.violation}`);
  }
}

/** What was not run now stays as the page says. */
function writePage() {
  const path = join(root, "docs", "mutants.md");
  const before = existsSync(path) ? readVerdicts(readFileSync(path, "utf8")) : [];
  writeFileSync(path, renderPage(mutants, profiles, new Map([...before, ...verdicts])));
}

/** Caught is what breaks a seed that the code as it is passes. */
async function judge(mutant) {
  const { id, profile = "usual" } = mutant;
  const { options } = profiles[profile];
  const untilMs = Date.now() + minutesMax * 60_000;
  let seeds = 0;
  let fromSeed = Number(values.from);
  const endSeed = fromSeed + seedsMax;
  while (fromSeed < endSeed && Date.now() < untilMs) {
    const count = Math.min(SEEDS_A_PROCESS, endSeed - fromSeed);
    const task = { modules: compiled.get(id).mutant, options, fromSeed, seeds: count, untilMs };
    const { ran, broken } = await runChild(task);
    seeds += ran;
    fromSeed += ran;
    if (broken === undefined) continue;
    const { seed, violation } = broken;
    if (!(await passesUnchanged(mutant, seed))) {
      console.log(`seed ${seed} (${profile}) is broken without the mutant ${id}, too`);
      continue;
    }
    return { kind: "caught", checker: checkerOf(violation), seeds, seed, violation };
  }
  return { kind: "SURVIVED", seeds };
}

/** The same seed and plan on the code as it is; with the other line of defence out where the mutant has one out. */
function passesUnchanged({ id, profile = "usual", without = [] }, seed) {
  const key = JSON.stringify([profile, seed, without]);
  const { options } = profiles[profile];
  const task = { modules: compiled.get(id).control, options, fromSeed: seed, seeds: 1, untilMs: Infinity };
  const known = controls.get(key) ?? runChild(task).then(({ broken }) => broken === undefined);
  controls.set(key, known);
  return known;
}

async function runChild(task) {
  const file = join(root, "scripts", "mutants", "seeds.mjs");
  const child = spawn(process.execPath, [file], { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  // JSON has no infinity.
  child.stdin.end(JSON.stringify({ ...task, untilMs: Math.min(task.untilMs, Number.MAX_SAFE_INTEGER) }));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`the process that runs seeds ended with ${code}`);
  return JSON.parse(output);
}
