import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = join(fileURLToPath(import.meta.url), "../../..");

/** Each is caught by its first seeds, or by its test file, which the code without the mutant has to pass. */
const OBVIOUS = ["in-use-ignored", "in-use-after-mount", "finalizer-before-unpublish", "lost-record-deletes"];

test("four mutants are caught on seeds, or by a test, that the code as it is passes", async () => {
  const args = ["run", "-s", "mutants", "--", "--only", OBVIOUS.join(), "--seeds", "12", "--jobs", "2"];

  const { stdout } = await promisify(execFile)("npm", args, { cwd: root });

  for (const id of OBVIOUS) expect(stdout).toMatch(new RegExp(`^caught .* ${id}$`, "m"));
  expect(stdout).toContain("4 of 4 caught");
});
