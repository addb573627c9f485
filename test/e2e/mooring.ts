import { spawn, spawnSync, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

export const MOORING = fileURLToPath(new URL("../../bin/mooring", import.meta.url));

/** Runs a command to its end. */
export function mooring(...args: string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MOORING, ...args], { encoding: "utf8" });
  return { code: status, stdout, stderr };
}

/** A process that stays, with what it has said so far. */
export class Running {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #exited: Promise<unknown>;
  readonly #waiting = new Set<() => void>();
  stdout = "";
  stderr = "";

  constructor(...args: string[]) {
    this.#child = spawn(process.execPath, [MOORING, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    this.#exited = once(this.#child, "close");
    const heard = () => this.#waiting.forEach((look) => look());
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      heard();
    });
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      heard();
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Waits until it has said something that matches; fails with all it said if it ends before. */
  says(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
        if (match !== null) resolve(match);
      };
      this.#waiting.add(look);
      look();
      void this.#exited.then(() =>
        reject(new Error(`it ended without saying ${String(pattern)}:\n${this.stdout}\n${this.stderr}`)),
      );
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async exit(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    await this.#exited;
    return { code: this.#child.exitCode, signal: this.#child.signalCode };
  }
}

/** A folder for one test file, and what to call when it is done. */
export function scratch(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "mooring-e2e-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
