// Runs a test file on a mutant that no seed can see: what its rule guards against happens outside of the simulated cluster.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { root } from "../build.mjs";

/** Vitest prints what failed as JSON; a failed run ends with 1. */
const OUTPUT_BYTES_MAX = 64 << 20;

/**
 * The first test of the file that fails, with what it said, or undefined. `changes` are applied to the sources that it imports. Throws where no test
 * was run: a file that cannot be loaded sees nothing.
 */
export async function failingTest(file, changes) {
  const { testResults } = await runVitest(file, changes);
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  if (tests.length === 0)
    throw new Error(`no test of ${file} was run: ${testResults[0]?.message ?? "it was not found"}`);
  const failed = tests.find(({ status }) => status === "failed");
  return failed && `${failed.fullName}: ${failed.failureMessages[0]?.split("\n")[0]}`;
}

function runVitest(file, changes) {
  const config = join(root, "scripts", "mutants", "vitest.config.mjs");
  const vitest = join(root, "node_modules", ".bin", "vitest");
  const args = ["run", "--config", config, "--reporter", "json", "--bail", "1", file];
  const env = { ...process.env, MOORING_CHANGES: JSON.stringify(changes) };
  return new Promise((resolve, reject) => {
    execFile(vitest, args, { cwd: root, env, maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout) => {
      try {
        // What a test prints stands before.
        resolve(JSON.parse(stdout.slice(stdout.indexOf('{"numTotal'))));
      } catch {
        reject(error ?? new Error(`vitest has no result of ${file}`));
      }
    });
  });
}
