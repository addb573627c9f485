// `npm run mutants`: changes one safety rule of the product at a time and lets the simulator find it.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./build.mjs";
import { createJudge } from "./mutants/judge.mjs";
import { mutants, profiles } from "./mutants/list.mjs";
import { readVerdicts, renderPage } from "./mutants/page.mjs";
import { openRecord } from "./mutants/record.mjs";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    shard: { type: "string" },
    resume: { type: "boolean", default: false },
    seeds: { type: "string", default: "2000" },
    from: { type: "string", default: "1" },
    minutes: { type: "string", default: "30" },
    jobs: { type: "string", default: String(availableParallelism()) },
    write: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
  },
});

const record = openRecord(join(root, "dist"));
const judge = createJudge({
  ...{ mutants, profiles },
  ...{ firstSeed: Number(values.from), seedsMax: Number(values.seeds), minutesMax: Number(values.minutes) },
});
const verdicts = new Map();
const chosen = shard(choose(values.only?.split(",")), values.shard);
const waiting = chosen.filter((mutant) => !values.resume || !isKnown(mutant));
if (values.write) writePage();
await Promise.all(Array.from({ length: Number(values.jobs) }, work));
const survived = chosen.filter(({ id }) => verdicts.get(id).kind !== "caught");
console.log(`${chosen.length - survived.length} of ${chosen.length} caught`);
process.exit(survived.length > 0 ? 1 : 0);

function choose(ids) {
  const unknown = ids?.filter((id) => !mutants.some((mutant) => mutant.id === id)) ?? [];
  if (unknown.length > 0) misused(`there is no mutant ${unknown.join(", ")}`);
  return mutants.filter(({ id }) => ids?.includes(id) ?? true);
}

/** `2/3` is every third from the second on: what takes long is spread, because related mutants stand together. */
function shard(all, text) {
  if (text === undefined) return all;
  const [part, parts] = text.split("/").map(Number);
  if (!(part >= 1 && part <= parts)) misused(`"${text}" is no part: give 1/3, 2/3 or 3/3`);
  return all.filter((_, at) => at % parts === part - 1);
}

function misused(text) {
  process.stderr.write(`mutants: ${text}\n`);
  process.exit(2);
}

/** Caught before, by this very code. One that survived is tried again: there may be more time now. */
function isKnown(mutant) {
  const verdict = record.get(mutant, profiles);
  if (verdict?.kind !== "caught") return false;
  verdicts.set(mutant.id, verdict);
  return true;
}

async function work() {
  for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
    const startedMs = Date.now();
    const verdict = await judge(mutant);
    verdicts.set(mutant.id, verdict);
    record.set(mutant, profiles, verdict);
    if (values.write) writePage();
    const took = `${((Date.now() - startedMs) / 1_000).toFixed(1)} s`.padStart(8);
    const seeds = seedsText(verdict).padStart(10);
    const checker = (verdict.checker ?? "").padEnd(14);
    console.log(`${verdict.kind.padEnd(8)}  ${checker}  ${seeds}  ${took}  ${mutant.id}`);
    if (values.verbose && verdict.violation)
      console.log(`          ${mutant.test ?? `seed ${verdict.seed}`}: ${verdict.violation}`);
  }
}

/** A test takes none. */
function seedsText({ seeds }) {
  if (seeds === undefined) return "";
  return `${seeds} ${seeds === 1 ? "seed" : "seeds"}`;
}

/** What was not run now stays as the page says. */
function writePage() {
  const path = join(root, "docs", "mutants.md");
  const before = existsSync(path) ? readVerdicts(readFileSync(path, "utf8")) : [];
  writeFileSync(path, renderPage(mutants, profiles, new Map([...before, ...verdicts])));
}
