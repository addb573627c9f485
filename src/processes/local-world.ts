import { spawn, type ChildProcess } from "node:child_process";
import { createReadStream } from "node:fs";
import { homedir } from "node:os";
import type { Readable } from "node:stream";
import { isatty } from "node:tty";
import { abortReason } from "../base/clock.ts";
import type { ConfigWorld, ProgramResult, ProgramRun } from "../kube/config/world.ts";

/** What is kept of a program's stderr: its end, where the error is. */
const STDERR_BYTES_KEPT = 8 * 1024;

/** Between asking a program to end and ending it. */
const KILL_AFTER_MS = 2_000;

/** This machine, as reading a kubeconfig sees it. */
export function createLocalWorld(): ConfigWorld {
  return {
    env: process.env,
    homeDir: homedir(),
    interactive: isatty(0) && isatty(2),
    readFile: readBounded,
    runProgram,
  };
}

async function readBounded(path: string, { maxBytes }: { maxBytes: number }): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw Object.assign(new Error(`${path} is above ${maxBytes} bytes`), { code: "EFBIG" });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function runProgram(run: ProgramRun): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    if (run.signal.aborted) {
      reject(abortReason(run.signal));
      return;
    }
    const child = start(run);
    let failure: Error | undefined;
    let killer: NodeJS.Timeout | undefined;

    function stop(reason: Error): void {
      if (failure !== undefined) return;
      failure = reason;
      kill(child, run, "SIGTERM");
      killer = setTimeout(() => {
        kill(child, run, "SIGKILL");
        settle(undefined);
      }, KILL_AFTER_MS);
    }
    function settle(exitCode: number | undefined): void {
      clearTimeout(killer);
      run.signal.removeEventListener("abort", onAbort);
      if (failure !== undefined) reject(failure);
      else resolve({ exitCode, stdout: stdout.text(), stderr: stderr.text() });
    }
    const onAbort = () => stop(abortReason(run.signal));
    const stdout = collect(child.stdout, { maxBytes: run.maxStdoutBytes, onFull: () => stop(tooMuch(run)) });
    const stderr = collect(child.stderr, { maxBytes: STDERR_BYTES_KEPT });
    run.signal.addEventListener("abort", onAbort, { once: true });
    child.once("error", (error) => {
      failure ??= error;
      settle(undefined);
    });
    child.once("close", (code) => settle(code ?? undefined));
  });
}

function start({ command, args, env, interactive }: ProgramRun): ChildProcess {
  return spawn(command, args, {
    env,
    shell: false,
    stdio: interactive ? ["inherit", "pipe", "inherit"] : ["ignore", "pipe", "pipe"],
    // In a process group of its own its children can be ended with it; on a terminal it has to stay in ours.
    detached: !interactive,
  });
}

function kill({ pid }: ChildProcess, { interactive }: ProgramRun, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(interactive ? pid : -pid, signal);
  } catch {
    // It ended by itself in the meantime.
  }
}

/** Gathers a stream in memory, of which it keeps the last `maxBytes` and what arrived with them. */
function collect(
  stream: Readable | null,
  { maxBytes, onFull }: { maxBytes: number; onFull?: () => void },
): { text(): string } {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream?.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) onFull?.();
    while (bytes - (chunks[0]?.length ?? 0) >= maxBytes) bytes -= chunks.shift()?.length ?? 0;
  });
  return { text: () => Buffer.concat(chunks).toString("utf8") };
}

function tooMuch({ command, maxStdoutBytes }: ProgramRun): Error {
  return Object.assign(new Error(`${command} wrote more than ${maxStdoutBytes} bytes`), { code: "EFBIG" });
}
