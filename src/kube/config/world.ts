/**
 * What reading a kubeconfig needs of the machine it runs on. `processes/local-world.ts` is the real one,
 * `memory-world.ts` the one of tests.
 */
export interface ConfigWorld {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Empty where the user has none. */
  readonly homeDir: string;
  /** Somebody sits at a terminal and can answer a plugin's questions. */
  readonly interactive: boolean;
  /**
   * The whole file as UTF-8. Rejects with an Error that has the system's `code`: ENOENT, EACCES, EISDIR, and
   * EFBIG for a file above `maxBytes`. Pipes (`--kubeconfig <(…)`) must work, so the size shows while reading.
   */
  readFile(path: string, options: { readonly maxBytes: number }): Promise<string>;
  /**
   * Runs a program without a shell and resolves when it ended, whatever its exit code. Rejects with `code`
   * ENOENT or EACCES if it could not be started, EFBIG if it wrote more than `maxStdoutBytes`, and with the
   * signal's reason once that aborts; the program and its children are then killed.
   */
  runProgram(run: ProgramRun): Promise<ProgramResult>;
}

export interface ProgramRun {
  /** Looked up in PATH unless it contains a slash. */
  readonly command: string;
  readonly args: readonly string[];
  /** All of it: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly maxStdoutBytes: number;
  /** Gives the program the terminal: stdin to answer with, stderr to ask on. Otherwise stdin is empty. */
  readonly interactive: boolean;
  readonly signal: AbortSignal;
}

export interface ProgramResult {
  /** Undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  /** The last few KiB; empty when it went to the terminal. */
  readonly stderr: string;
}

/** `ENOENT` and friends, where the error has one. */
export function systemCode(error: unknown): string | undefined {
  const code: unknown = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : undefined;
}
