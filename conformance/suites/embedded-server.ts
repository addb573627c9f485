import { execFile } from "node:child_process";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Performance } from "./suite.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const RUN_MS_MAX = 300_000;
/** Real programs and perhaps their builds are on the machine as well: twice the time that `npm test` gives a test. */
const PATIENT = ["--reporter=default", "--testTimeout=120000", "--hookTimeout=120000"];

/** The suite that `npm test` runs with whatever kubectl the machine has, with the pinned one. */
export async function kubectl({ stage, binaries }: Performance): Promise<string> {
  const programs = await binaries.need("kubectl");
  const path = `${dirname(programs["kubectl"] ?? "")}${delimiter}${process.env["PATH"] ?? ""}`;
  return vitest(["--project", "e2e", "test/e2e/kubectl.test.ts"], { path, signal: stage.signal });
}

export async function recordings({ stage }: Performance): Promise<string> {
  const path = process.env["PATH"] ?? "";
  return vitest(["--project", "unit", "test/recordings.test.ts"], { path, signal: stage.signal });
}

async function vitest(
  args: readonly string[],
  { path, signal }: { readonly path: string; readonly signal: AbortSignal },
): Promise<string> {
  const command = join(ROOT, "node_modules", ".bin", "vitest");
  const env = { ...process.env, PATH: path, NO_COLOR: "1" };
  const options = { cwd: ROOT, env, signal, timeout: RUN_MS_MAX, maxBuffer: 64 * 2 ** 20 };
  const { stdout } = await run(command, ["run", ...args, ...PATIENT], options).catch((error: unknown) => {
    const { stdout: said = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    // Which test was the first, and what it said.
    const told = /^.*FAIL *(.*)\n(.*)$/m.exec(`${said}\n${stderr}`)?.slice(1).join(": ");
    throw new Error((told ?? String(error)).slice(0, 300));
  });
  if (stdout.includes("left out:")) throw new Error("the suite left itself out");
  return /Tests\s+(.*?)\s*(\(|$)/m.exec(stdout)?.[1] ?? "no verdict";
}
