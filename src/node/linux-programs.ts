import { existsSync } from "node:fs";
import type { Clock } from "../base/clock.ts";
import { PROGRAM_DIRECTORIES, runProgram, type ProgramOutcome } from "../base/programs.ts";
import type { ChildSlots } from "./child-slots.ts";
import { HostError, type HostErrorCode, type HostPrograms, type ProgramResult } from "./host.ts";

export interface Tools extends HostPrograms {
  isInstalled(name: string): boolean;
  /** As `run`, where exit 0 and those of `ok` are the only good answers. */
  must(name: string, args: readonly string[], options: MustOptions): Promise<ProgramResult>;
}

export interface MustOptions {
  readonly timeoutMs: number;
  /** What is being done and to what, for the message. */
  readonly doing: string;
  readonly ok?: readonly number[];
}

/** Whatever gets more time than this is expected to need it: mkfs, fsck, growing a filesystem. */
const QUICK_MS_MAX = 120_000;

export function createTools(
  { clock, slots }: { readonly clock: Clock; readonly slots: ChildSlots },
  directories: readonly string[] = PROGRAM_DIRECTORIES,
): Tools {
  function find(program: string): string | undefined {
    const candidates = program.startsWith("/") ? [program] : directories.map((one) => `${one}/${program}`);
    return candidates.find((path) => existsSync(path));
  }

  const run: HostPrograms["run"] = async (program, args, { timeoutMs, stdin, signal }) => {
    const path = find(program);
    if (path === undefined) throw new HostError("NoTool", `${program} is not installed`);
    const about = args.at(-1) ?? program;
    const turn = { about, doing: `${program} ${about}`, long: timeoutMs > QUICK_MS_MAX, signal };
    return slots.program(turn, async (both, onExit) => {
      const outcome = await runProgram(clock, { path, args, timeoutMs, stdin, signal: both, onExit });
      return toResult(outcome, { program, path, timeoutMs });
    });
  };

  return {
    isInstalled: (name) => find(name) !== undefined,
    run,
    async must(name, args, { timeoutMs, doing, ok = [] }) {
      const result = await run(name, args, { timeoutMs });
      if (result.exitCode === 0 || ok.includes(result.exitCode)) return result;
      throw toFailure(doing, name, result);
    },
  };
}

function toResult(
  outcome: ProgramOutcome,
  {
    program,
    path,
    timeoutMs,
  }: { readonly program: string; readonly path: string; readonly timeoutMs: number },
): ProgramResult {
  switch (outcome.kind) {
    case "exited":
      return { exitCode: outcome.exitCode, stdout: outcome.stdout, stderr: outcome.stderr };
    case "cannot-run":
      throw new HostError("Failed", `cannot run ${path}: ${outcome.cause.message}`, { cause: outcome.cause });
    case "aborted":
      throw new HostError("TimedOut", `${program} was stopped before it had finished`);
    case "timed-out":
      throw new HostError(
        "TimedOut",
        `${program} did not finish within ${timeoutMs} ms${outcome.gone ? "" : " and hangs in the kernel"}`,
      );
  }
}

/** Exit codes of these tools say little; their words, in the C locale, are the only way to tell what went wrong. */
const MEANINGS: readonly (readonly [RegExp, HostErrorCode])[] = [
  [/not mounted|no mount point specified/i, "NotFound"],
  [/no space left|not enough space/i, "NoSpace"],
  [/target is busy|resource busy|device is busy|already mounted or mount point busy/i, "Busy"],
  [/stale file handle|not connected|input\/output error|host is down/i, "Corrupted"],
  [/operation not permitted|permission denied|read-only file system|write-protected/i, "NotPermitted"],
  [/does not exist|no such file|no such device/i, "NotFound"],
];

function toFailure(doing: string, name: string, { exitCode, stdout, stderr }: ProgramResult): HostError {
  const text = `${stderr}\n${stdout}`;
  const code = MEANINGS.find(([pattern]) => pattern.test(text))?.[1] ?? "Failed";
  const line = text.split("\n").find((one) => one.trim() !== "") ?? "no message";
  return new HostError(code, `${doing}: ${name} exited with ${exitCode}: ${line.trim().slice(0, 300)}`);
}
