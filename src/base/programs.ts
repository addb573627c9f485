import { spawn } from "node:child_process";
import type { Clock } from "./clock.ts";

/** Running a program: an argument array and never a shell, a bare environment, a deadline, bounded output. */
export interface ProgramRequest {
  /** Absolute: nothing is searched for. */
  readonly path: string;
  readonly args: readonly string[];
  readonly timeoutMs: number;
  readonly stdin?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** An open file that the program gets as its descriptor 3. */
  readonly file?: number | undefined;
  /** Called once the process is gone or was never there: with `gone: false`, long after the answer. */
  readonly onExit?: (() => void) | undefined;
}

export type ProgramOutcome =
  | { readonly kind: "exited"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  /** `gone: false`: it hangs in the kernel and not even SIGKILL ends it; what it began may go on. */
  | { readonly kind: "timed-out" | "aborted"; readonly gone: boolean }
  | { readonly kind: "cannot-run"; readonly cause: Error };

export const PROGRAM_DIRECTORIES = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/** Of each stream; the rest is read and dropped, so that the program never blocks on a full pipe. */
const OUTPUT_CHARS_MAX = 1 << 20;
/** From SIGTERM to SIGKILL, and from there to giving up on it. */
const KILL_MS = 2_000;
const GIVE_UP_MS = 1_000;

/** Never rejects. Resolves at the latest 3 s after the deadline, whether or not the program can be ended. */
export function runProgram(clock: Clock, request: ProgramRequest): Promise<ProgramOutcome> {
  return new Promise((resolve) => {
    const { timeoutMs, signal } = request;
    const child = start(request);
    const output = collect(child);
    let stopped: "timed-out" | "aborted" | undefined;
    let timer = clock.after(timeoutMs, () => stop("timed-out"));
    const onAbort = () => stop("aborted");
    function settle(outcome: ProgramOutcome): void {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
      resolve(outcome);
    }
    function stop(why: "timed-out" | "aborted"): void {
      if (stopped !== undefined) return;
      stopped = why;
      timer.cancel();
      child.kill("SIGTERM");
      timer = clock.after(KILL_MS, () => {
        child.kill("SIGKILL");
        timer = clock.after(GIVE_UP_MS, () => {
          letGo(child);
          settle({ kind: why, gone: false });
        });
      });
    }
    child.once("exit", () => request.onExit?.());
    child.once("error", (cause) => {
      if (child.pid === undefined) request.onExit?.();
      settle({ kind: "cannot-run", cause });
    });
    child.once("close", (code) => {
      if (stopped === undefined) settle({ kind: "exited", exitCode: code ?? 255, ...output });
    });
    // What it started may hold its output open for ever, so that a stopped one is not waited for beyond its own end.
    child.once("exit", () => {
      if (stopped === undefined) return;
      letGo(child);
      settle({ kind: stopped, gone: true });
    });
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
  });
}

type Child = ReturnType<typeof spawn>;

function start({ path, args, stdin, file }: ProgramRequest): Child {
  const child = spawn(path, args, {
    stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe", ...(file === undefined ? [] : [file])],
    env: { LC_ALL: "C", PATH: PROGRAM_DIRECTORIES.join(":") },
  });
  // A program that does not read what it is given closes its end: that is its answer's business, not an error here.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(stdin);
  return child;
}

function collect(child: Child): { stdout: string; stderr: string } {
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream]?.setEncoding("utf8");
    child[stream]?.on("data", (text: string) => {
      if (output[stream].length < OUTPUT_CHARS_MAX) output[stream] += text;
    });
  }
  return output;
}

/** What hangs in the kernel must not keep this process from ending. */
function letGo(child: Child): void {
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
}
