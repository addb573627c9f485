import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Clock } from "../base/clock.ts";
import { HostError, type HostErrorCode } from "./host.ts";

/** Runs tools of the system: argument arrays, absolute paths, a deadline, capped output. Never a shell. */
export interface Tools {
  /** The absolute path, or undefined where it is not installed. */
  find(name: string): string | undefined;
  /** Resolves with stdout on exit 0 or one of `ok`; HostError otherwise. The child is gone when it settles. */
  run(name: string, args: readonly string[], options: RunOptions): Promise<ToolResult>;
}

export interface RunOptions {
  readonly timeoutMs: number;
  /** Exit codes besides 0 that are answers, not failures. */
  readonly ok?: readonly number[];
  readonly signal?: AbortSignal | undefined;
  /** An open file that the child gets as its descriptor 3. */
  readonly file?: number;
}

export interface ToolResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const DIRECTORIES = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const OUTPUT_BYTES_MAX = 64 * 1024;
/** Between SIGTERM and SIGKILL. */
const KILL_MS = 5_000;

export function createTools(clock: Clock, directories: readonly string[] = DIRECTORIES): Tools {
  const found = new Map<string, string>();
  function find(name: string): string | undefined {
    const known = found.get(name);
    if (known !== undefined) return known;
    const path = directories
      .map((directory) => `${directory}/${name}`)
      .find((candidate) => existsSync(candidate));
    if (path !== undefined) found.set(name, path);
    return path;
  }
  return {
    find,
    async run(name, args, options) {
      const path = find(name);
      if (path === undefined) throw new HostError("NoTool", `${name} is not installed`);
      const result = await runChild(clock, path, args, options);
      if (result.exitCode === 0 || options.ok?.includes(result.exitCode)) return result;
      throw toFailure(name, result);
    },
  };
}

function runChild(
  clock: Clock,
  path: string,
  args: readonly string[],
  { timeoutMs, signal, file }: RunOptions,
): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, {
      stdio: ["ignore", "pipe", "pipe", ...(file === undefined ? [] : [file])],
      env: { LC_ALL: "C", PATH: DIRECTORIES.join(":") },
    });
    const output = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream]?.setEncoding("utf8");
      child[stream]?.on("data", (text: string) => {
        if (output[stream].length < OUTPUT_BYTES_MAX) output[stream] += text;
      });
    }
    let stopped: string | undefined;
    const timers: { cancel(): void }[] = [];
    const stop = (why: string) => {
      if (stopped !== undefined) return;
      stopped = why;
      child.kill("SIGTERM");
      timers.push(clock.after(KILL_MS, () => void child.kill("SIGKILL")));
    };
    const onAbort = () => stop("was stopped");
    timers.push(clock.after(timeoutMs, () => stop(`took longer than ${timeoutMs} ms`)));
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    const settle = (outcome: () => void) => {
      for (const timer of timers) timer.cancel();
      signal?.removeEventListener("abort", onAbort);
      outcome();
    };
    child.once("error", (error) =>
      settle(() => reject(new HostError("Failed", `cannot run ${path}`, { cause: error }))),
    );
    child.once("close", (code) =>
      settle(() => {
        if (stopped !== undefined) reject(new HostError("TimedOut", `${path} ${stopped}`));
        else resolve({ exitCode: code ?? 255, ...output });
      }),
    );
  });
}

const MEANINGS: readonly (readonly [RegExp, HostErrorCode])[] = [
  [/no space left|not enough space/i, "NoSpace"],
  [/operation not permitted|permission denied to resize/i, "NotPermitted"],
  [/target is busy|resource busy|device is busy/i, "Busy"],
  [/no such file|no such device/i, "NotFound"],
];

/** The first line of what the tool says, without paths that may hold another user's words. */
function toFailure(name: string, { exitCode, stdout, stderr }: ToolResult): HostError {
  const text = `${stderr}\n${stdout}`;
  const code = MEANINGS.find(([pattern]) => pattern.test(text))?.[1] ?? "Failed";
  const line = stderr.split("\n").find((one) => one.trim() !== "") ?? "no message";
  return new HostError(code, `${name} exited with ${exitCode}: ${line.trim().slice(0, 200)}`);
}
