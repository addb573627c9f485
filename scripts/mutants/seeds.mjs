// Runs seeds on a mutant, or on the code as it is, until one is broken. Reads its task from stdin, answers one line.
import { readFileSync } from "node:fs";
import { register } from "node:module";
import { deserialize } from "node:v8";

const { modules, options, fromSeed, seeds, untilMs } = deserialize(readFileSync(0));
if (modules.length > 0) register("./hooks.mjs", import.meta.url, { data: modules });
const { runSeed } = await import("../../dist/src/sim/run.js");

let ran = 0;
let broken;
for (let seed = fromSeed; seed < fromSeed + seeds && broken === undefined; seed++) {
  if (Date.now() > untilMs) break;
  const { violations } = await runSeed(seed, options);
  ran++;
  if (violations.length > 0) broken = { seed, violation: violations[0] };
}
process.stdout.write(JSON.stringify({ ran, broken }), () => process.exit(0));
