// The kubectl a user has, with a home of its own: nothing it reads or caches is shared with the machine.
import { execFile, spawn, spawnSync, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";

/** A call takes 0.1 s on an idle machine; 100 times that is a hang and not a slow machine. */
const CALL_MS_MAX = 15_000;

export interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Kubectl {
  /** Runs to the end, whatever the exit code. */
  run(args: readonly string[], env?: Record<string, string>): Promise<Answer>;
  /** What it printed; fails with what it said when it does not exit with 0. */
  ok(...args: string[]): Promise<string>;
  /** What it printed to stderr; fails when it exits with 0. */
  refused(...args: string[]): Promise<string>;
  /** Writes objects, one after the other, to a file for `-f`; each test needs names of its own. */
  file(name: string, ...objects: object[]): string;
  /** Starts one that stays, such as `get -w`. */
  watch(...args: string[]): Watching;
}

/** `home` must exist; `kubeconfig` says which server. */
export function createKubectl({ home, kubeconfig }: { home: string; kubeconfig: string }): Kubectl {
  for (const folder of ["cache", "tmp", "files"]) mkdirSync(join(home, folder), { recursive: true });
  const base = {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: home,
    TMPDIR: join(home, "tmp"),
    KUBECACHEDIR: join(home, "cache"),
    KUBECONFIG: kubeconfig,
  };
  const run = (args: readonly string[], env: Record<string, string> = {}) =>
    finish(args, { ...base, ...env });
  return {
    run,
    async ok(...args) {
      const { code, stdout, stderr } = await run(args);
      if (code !== 0) throw new Error(`kubectl ${args.join(" ")} exited with ${code}:\n${stdout}${stderr}`);
      return stdout;
    },
    async refused(...args) {
      const { code, stdout, stderr } = await run(args);
      if (code === 0) throw new Error(`kubectl ${args.join(" ")} should have failed and said:\n${stdout}`);
      return stderr;
    },
    file(name, ...objects) {
      const path = join(home, "files", `${name}.json`);
      writeFileSync(path, objects.map((object) => JSON.stringify(object)).join("\n"));
      return path;
    },
    watch: (...args) => new Watching(args, base),
  };
}

export function kubectlIsHere(): boolean {
  return spawnSync("kubectl", ["version", "--client"], { timeout: CALL_MS_MAX }).status === 0;
}

function finish(args: readonly string[], env: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const limits = { env, timeout: CALL_MS_MAX, killSignal: "SIGKILL" as const };
    execFile("kubectl", args, limits, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code === "number") resolve({ code, stdout, stderr });
      else reject(new Error(`kubectl ${args.join(" ")} did not end by itself:\n${stdout}${stderr}`));
    });
  });
}

/** A `kubectl get -w` and the lines it has printed so far. */
export class Watching {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  #printed = "";

  constructor(args: readonly string[], env: Record<string, string>) {
    this.#child = spawn("kubectl", args, {
      env,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: CALL_MS_MAX,
      killSignal: "SIGKILL",
    });
    this.#child.stderr.resume();
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => (this.#printed += text));
  }

  get lines(): string[] {
    return this.#printed.split("\n").slice(0, -1);
  }

  /** Resolves with all lines once there are this many; fails when it ends before. */
  async until(count: number): Promise<string[]> {
    while (this.lines.length < count) {
      await Promise.race([once(this.#child.stdout, "data"), once(this.#child, "close")]);
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) break;
    }
    if (this.lines.length >= count) return this.lines;
    throw new Error(`the watch ended after ${this.lines.length} of ${count} lines:\n${this.#printed}`);
  }

  async end(): Promise<void> {
    const closed = once(this.#child, "close");
    if (this.#child.kill()) await closed;
  }
}

/** An editor for `kubectl edit`: applies a sed expression to the file it is given. */
export function writeSedEditor(folder: string, name: string, expression: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\nexec sed -i '${expression}' "$1"\n`);
  chmodSync(path, 0o700);
  return path;
}

/** A printed table, cut where its header's columns begin; cells may hold single spaces. */
export function table(printed: string): { header: string[]; rows: string[][] } {
  const lines = printed.split("\n").filter((line) => line !== "");
  const starts = [...(lines[0] ?? "").matchAll(/(?:^| {2})\S/g)].map(
    ({ index, 0: text }) => index + text.length - 1,
  );
  const cut = (line: string) => starts.map((start, i) => line.slice(start, starts[i + 1]).trim());
  const [header = [], ...rows] = lines.map(cut);
  return { header, rows };
}

/** The value after `Label:` in what `kubectl describe` prints; the first one of that name. */
export function described(printed: string, label: string): string | undefined {
  const escaped = label.replace(/[()]/g, "\\$&");
  return new RegExp(`^ *${escaped}: *(.*?) *$`, "m").exec(printed)?.[1];
}

/** The named columns of every row. */
export function cells(
  { header, rows }: ReturnType<typeof table>,
  columns: readonly string[],
): (string | undefined)[][] {
  return rows.map((row) => columns.map((column) => row[header.indexOf(column)]));
}
