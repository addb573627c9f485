// A process whose stderr is a pipe that is full and never read (`mooring up 2> >(stuck)`, a supervisor that hangs) goes on
// serving: its log lines are lost. A write to such a pipe blocks for ever unless the pipe was made non-blocking, which node
// does when `process.stderr` is first touched: src/cli/main.ts sees to that. (At present some module of node itself does too.)
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, existsSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { mooring, MOORING, scratch } from "../e2e/mooring.ts";

const place = scratch();
afterAll(() => place.remove());

/** A pipe without room for one more byte, and the end that a process writes to. */
function fullPipe(name: string): { stderr: number; close(): void } {
  const path = join(place.path, name);
  execFileSync("mkfifo", [path]);
  // An open file of its own: whether writes block is a property of that, and the process shall not find it changed.
  const filler = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const stderr = openSync(path, constants.O_WRONLY);
  for (const bytes of [4_096, 1])
    try {
      for (;;) writeSync(filler, Buffer.alloc(bytes, "."));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("EAGAIN");
    }
  return {
    stderr,
    close() {
      closeSync(stderr);
      closeSync(filler);
    },
  };
}

for (const [command, args] of [
  ["apiserver", []],
  ["up", ["--node-mode", "simulated", "--nodes", "1"]],
] as const)
  test(`mooring ${command} serves, and ends when it is told to`, async () => {
    const dataDir = join(place.path, command);
    const kubeconfig = join(dataDir, "admin.kubeconfig");
    const pipe = fullPipe(`${command}.pipe`);
    const flags = ["--data-dir", dataDir, "--listen", "127.0.0.1:0", ...args];
    const child = spawn(process.execPath, [MOORING, command, ...flags], {
      stdio: ["ignore", "ignore", pipe.stderr],
    });
    const ended = once(child, "exit") as Promise<[number | null]>;
    try {
      for (let waitedMs = 0; !existsSync(kubeconfig) && waitedMs < 60_000; waitedMs += 100) await sleep(100);
      const answer = () => mooring("get", "nodes", "--kubeconfig", kubeconfig, "--request-timeout", "5s");
      for (let tries = 0; answer().code !== 0 && tries < 10; tries++) await sleep(1_000);

      expect(answer()).toMatchObject({ code: 0 });
      child.kill("SIGTERM");
      expect(await Promise.race([ended, sleep(60_000, "still there")])).toEqual([0, null]);
    } finally {
      child.kill("SIGKILL");
      await ended;
      pipe.close();
    }
  });
