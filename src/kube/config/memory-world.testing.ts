import { abortReason } from "../../base/clock.ts";
import type { ConfigWorld, ProgramResult, ProgramRun } from "./world.ts";

/** A machine for tests: files and programs are maps that the test changes as it goes. */
interface MemoryWorld extends ConfigWorld {
  readonly env: Record<string, string | undefined>;
  readonly files: Map<string, string>;
  readonly programs: Map<
    string,
    (run: ProgramRun) => Promise<Partial<ProgramResult>> | Partial<ProgramResult>
  >;
  interactive: boolean;
  homeDir: string;
}

export function createMemoryWorld({
  env = {},
  files = {},
  homeDir = "/home/me",
}: {
  env?: Readonly<Record<string, string | undefined>>;
  files?: Readonly<Record<string, string>>;
  homeDir?: string;
} = {}): MemoryWorld {
  const world: MemoryWorld = {
    env: { ...env },
    files: new Map(Object.entries(files)),
    programs: new Map(),
    interactive: false,
    homeDir,
    async readFile(path, { maxBytes }) {
      const text = world.files.get(path);
      if (text === undefined) throw systemError("ENOENT", `no such file: ${path}`);
      if (Buffer.byteLength(text) > maxBytes)
        throw systemError("EFBIG", `${path} is above ${maxBytes} bytes`);
      return text;
    },
    async runProgram(run) {
      const program = world.programs.get(run.command);
      if (program === undefined) throw systemError("ENOENT", `no such program: ${run.command}`);
      const result = await untilAborted(run.signal, Promise.resolve(program(run)));
      if (Buffer.byteLength(result.stdout ?? "") > run.maxStdoutBytes)
        throw systemError("EFBIG", "too much output");
      return { exitCode: 0, stdout: "", stderr: "", ...result };
    },
  };
  return world;
}

function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
    work.then(resolve, reject);
  });
}

function systemError(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code });
}
