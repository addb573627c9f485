// Runs seeds on a mutant until a checker sees it, or the test that stands in for them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { clearTimeout, setTimeout } from "node:timers";
import { serialize } from "node:v8";
import { root } from "../build.mjs";
import { modulesOf, sourcesOf } from "./apply.mjs";
import { failingTest } from "./by-test.mjs";
import { checkerOf } from "./page.mjs";

/** A process is replaced after so many seeds: what killed simulated processes wait for is never let go. */
const SEEDS_A_PROCESS = 60;

/** Answers the function that judges one mutant. Throws where one of them no longer applies, before any is run. */
export function createJudge({ mutants, profiles, firstSeed, seedsMax, minutesMax }) {
  for (const { id, changes, without = [] } of mutants) sourcesOf({ id, changes: [...without, ...changes] });
  const controls = new Map();

  return (mutant) => (mutant.test === undefined ? judgeBySeeds(mutant) : judgeByTest(mutant));

  /** Caught is what fails in a test file that the code as it is passes. */
  async function judgeByTest({ id, test, changes, without = [] }) {
    const failed = await failingTest(test, [...without, ...changes]);
    if (failed === undefined) return { kind: "SURVIVED" };
    if ((await failingTest(test, without)) === undefined)
      return { kind: "caught", checker: "the test", violation: failed };
    throw new Error(`${test} fails without the mutant ${id}, too`);
  }

  /** Caught is what breaks a seed that the code as it is passes. */
  async function judgeBySeeds(mutant) {
    const { id, profile = "usual", changes, without = [] } = mutant;
    const modules = modulesOf({ id, changes: [...without, ...changes] });
    const { options } = profiles[profile];
    const untilMs = Date.now() + minutesMax * 60_000;
    let seeds = 0;
    let fromSeed = firstSeed;
    const endSeed = fromSeed + seedsMax;
    while (fromSeed < endSeed && Date.now() < untilMs) {
      const count = Math.min(SEEDS_A_PROCESS, endSeed - fromSeed);
      const task = { modules, options, fromSeed, seeds: count, untilMs };
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
    const modules = modulesOf({ id, changes: without });
    const task = { modules, options, fromSeed: seed, seeds: 1, untilMs: Infinity };
    const known = controls.get(key) ?? runChild(task).then(({ broken }) => broken === undefined);
    controls.set(key, known);
    return known;
  }
}

/** The slowest seed of an honest mutant takes half a minute. */
const SEED_MS_MAX = 5 * 60_000;

/** A mutant whose simulated programs are at something for ever, at one instant of simulated time, never ends by itself. */
async function runChild(task) {
  const file = join(root, "scripts", "mutants", "seeds.mjs");
  const child = spawn(process.execPath, [file], { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  // JSON would lose what a plan says is undefined.
  child.stdin.end(serialize(task));
  const ms = task.seeds === 1 ? SEED_MS_MAX : task.untilMs - Date.now() + SEED_MS_MAX;
  const timer = setTimeout(() => child.kill("SIGKILL"), ms);
  const [code, signal] = await once(child, "close");
  clearTimeout(timer);
  if (signal !== null) throw new Error(`a seed from ${task.fromSeed} on takes more than ${SEED_MS_MAX} ms`);
  if (code !== 0) throw new Error(`the process that runs seeds ended with ${code}`);
  return JSON.parse(output);
}
