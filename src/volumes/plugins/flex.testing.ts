import type { FlexDriverFile, FlexHost, FlexRun } from "./flex-driver.ts";

export const SUCCESS = `{"status":"Success"}`;
export const NOT_SUPPORTED = `{"status":"Not supported"}`;

type Reply = string | Partial<FlexRun> | Error | Promise<FlexRun>;

/** A machine with drivers that answer what the test says, and a record of how they were called. */
export class FakeFlexHost implements FlexHost {
  readonly calls: string[][] = [];
  /** By directory: its version. */
  readonly drivers = new Map<string, Omit<FlexDriverFile, "directory" | "file">>();
  /** By verb; what has none answers Success. */
  readonly replies = new Map<string, Reply | ((args: readonly string[]) => Reply)>();
  listError: Error | undefined;
  running = 0;
  runningMax = 0;

  async list(): Promise<readonly FlexDriverFile[]> {
    if (this.listError) throw this.listError;
    return [...this.drivers].map(([directory, file]) => ({
      directory,
      file: `/plugins/${directory}/${directory.split("~").at(-1) ?? ""}`,
      ...file,
    }));
  }

  async exec(file: string, args: readonly string[]): Promise<FlexRun> {
    this.calls.push([file, ...args]);
    this.runningMax = Math.max(this.runningMax, ++this.running);
    try {
      const reply = this.replies.get(args[0] ?? "") ?? SUCCESS;
      const answer = await (typeof reply === "function" ? reply(args) : reply);
      if (answer instanceof Error) throw answer;
      const run = typeof answer === "string" ? { stdout: answer } : answer;
      return { code: 0, stdout: "", stderr: "", ...run };
    } finally {
      this.running--;
    }
  }

  get verbs(): string[] {
    return this.calls.map(([, verb]) => verb ?? "");
  }
}
