import { CommanderError } from "commander";
import { KubeError } from "../kube/errors.ts";
import { ProcessError } from "../processes/errors.ts";

/** 0 done, 1 failed, 2 misused. Commander has printed its own complaint already; the rest is printed here. */
export function exitCodeOf(error: unknown, print: (line: string) => void): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  print(`mooring: ${explain(error)}`);
  return 1;
}

function explain(error: unknown): string {
  if (error instanceof ProcessError) return error.explanation;
  if (error instanceof KubeError || isSystemError(error)) return error.message;
  // Anything else is a fault of ours, and a report of it needs to say where.
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** A file or socket of this machine: the message names it, and no place in our code would help. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error;
}
