import { Running } from "./mooring.ts";

/** Processes of one test file, none of which may take longer than it should; what is left is killed. */
export class Bounded {
  readonly #started: Running[] = [];

  start(...args: readonly string[]): Running {
    const process = new Running(...args);
    this.#started.push(process);
    return process;
  }

  /** `ready` when it says so, `ended` when it ends before, `hung` when it does neither in time. */
  async outcome(process: Running, ready: RegExp, ms: number): Promise<"ready" | "ended" | "hung"> {
    const said = process.says(ready).then(
      () => "ready" as const,
      () => "ended" as const,
    );
    return (await inTime(said, ms)) ?? "hung";
  }

  /** After one signal; undefined where it is still there after so long. */
  async ends(process: Running, signal: NodeJS.Signals, ms: number): Promise<number | undefined> {
    const sentMs = performance.now();
    process.kill(signal);
    const end = await inTime(process.exit(), ms);
    return end && performance.now() - sentMs;
  }

  async killAll(): Promise<void> {
    for (const process of this.#started.splice(0)) {
      process.kill("SIGKILL");
      await process.exit();
    }
  }
}

async function inTime<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
