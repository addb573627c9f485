import { execFile } from "node:child_process";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Performance } from "./suite.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const RUN_MS_MAX = 300_000;

/** The suite that `npm test` runs with whatever kubectl the machine has, with the pinned one. */
export async function kubectl({ binaries }: Performance): Promise<string> {
  const programs = await binaries.need("kubectl");
  const path = `${dirname(programs["kubectl"] ?? "")}${delimiter}${process.env["PATH"] ?? ""}`;
  return vitest(["--project", "e2e", "test/e2e/kubectl.test.ts"], path);
}

export async function recordings(): Promise<string> {
  return vitest(["--project", "unit", "test/recordings.test.ts"], process.env["PATH"] ?? "");
}

async function vitest(args: readonly string[], path: string): Promise<string> {
  const command = join(ROOT, "node_modules", ".bin", "vitest");
  const env = { ...process.env, PATH: path, NO_COLOR: "1" };
  const options = { cwd: ROOT, env, timeout: RUN_MS_MAX, maxBuffer: 64 * 2 ** 20 };
  const { stdout } = await run(command, ["run", ...args, "--reporter=default"], options).catch(
    (error: unknown) => {
      const { stdout: said = "", stderr = "" } = error as { stdout?: string; stderr?: string };
      throw new Error((/^.*FAIL.*$/m.exec(`${said}\n${stderr}`)?.[0] ?? String(error)).slice(0, 300));
    },
  );
  if (stdout.includes("left out:")) throw new Error("the suite left itself out");
  return /Tests\s+(.*?)\s*(\(|$)/m.exec(stdout)?.[1] ?? "no verdict";
}
