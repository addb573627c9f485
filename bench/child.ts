import { fork, type ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Each part of a benchmark runs in a fresh process of its own: no heap, code or connection of one contestant is
 * there when the next is measured. A child gets one input, answers once, and ends when its parent lets go of it
 * or is gone.
 */
export interface Child<Output> {
  readonly answer: Promise<Output>;
  /** Resolves when the process has ended. */
  end(): Promise<void>;
}

export interface ChildOptions {
  readonly role: string;
  readonly input: unknown;
  /** Of V8's old generation; a child that needs more dies, and its answer rejects. */
  readonly heapMb: number;
  /** For the answer; a child that takes longer is ended. */
  readonly deadlineMs: number;
}

export function startChild<Output>({ role, input, heapMb, deadlineMs }: ChildOptions): Child<Output> {
  const child = fork(process.argv[1] ?? "", ["--role", role], {
    execArgv: ["--expose-gc", `--max-old-space-size=${heapMb}`],
    // Its stdout is ours, which ends in a line of JSON; whatever a child has to say goes to stderr.
    stdio: ["ignore", 2, 2, "ipc"],
  });
  child.send(input as object);
  return { answer: answerOf<Output>(child, { role, deadlineMs }), end: () => end(child) };
}

/** One question, one answer, and the process is gone. */
export async function ask<Output>(options: ChildOptions): Promise<Output> {
  const child = startChild<Output>(options);
  try {
    return await child.answer;
  } finally {
    await child.end();
  }
}

function answerOf<Output>(
  child: ChildProcess,
  { role, deadlineMs }: Pick<ChildOptions, "role" | "deadlineMs">,
): Promise<Output> {
  const answered = new AbortController();
  const answer = new Promise<Output>((resolve, reject) => {
    child.once("message", (message) => {
      const { error, output } = message as { error?: string; output: Output };
      if (error === undefined) resolve(output);
      else reject(new Error(`${role}: ${error}`));
    });
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      reject(new Error(`${role}: ended with ${signal ?? `exit code ${code ?? "?"}`} before it answered`)),
    );
    sleep(deadlineMs, undefined, { signal: answered.signal }).then(
      () => reject(new Error(`${role}: no answer within ${deadlineMs / 1000} s`)),
      () => undefined,
    );
  });
  return answer.finally(() => answered.abort());
}

/** How long a child may take to leave by itself. */
const LEAVE_MS = 2_000;

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  if (child.connected) child.disconnect();
  const patience = new AbortController();
  await Promise.race([gone, sleep(LEAVE_MS, undefined, { signal: patience.signal })]);
  patience.abort();
  child.kill("SIGKILL");
  await gone;
}

/** The child's side: loads its role, works on the one input, sends the answer, and stays until let go. */
export async function serveRole(
  roles: Readonly<Record<string, () => Promise<(input: never) => Promise<unknown>>>>,
  name: string | undefined,
): Promise<void> {
  const load = Object.hasOwn(roles, name ?? "") ? roles[name ?? ""] : undefined;
  if (load === undefined || process.send === undefined) {
    process.stderr.write("bench: --role is only for the children that a benchmark starts itself\n");
    process.exitCode = 2;
    return;
  }
  process.once("disconnect", () => process.exit());
  const input = await new Promise((resolve) => process.once("message", resolve));
  try {
    const work = await load();
    process.send({ output: await work(input as never) });
  } catch (error) {
    process.send({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}
