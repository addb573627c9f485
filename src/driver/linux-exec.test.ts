import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createTools, type Tools } from "./linux-exec.ts";

/** Tools replaced by small scripts; time is simulated, so a sleeper is killed at once. */

let folder: string;
let scheduler: SimScheduler;
let tools: Tools;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tools-"));
  scheduler = new SimScheduler(createSeededRandom("tools"));
  tools = createTools(scheduler.createClock(), [folder]);
});
afterEach(() => rm(folder, { recursive: true }));

async function given(name: string, ...lines: string[]): Promise<void> {
  await writeFile(join(folder, name), ["#!/bin/sh", ...lines, ""].join("\n"));
  await chmod(join(folder, name), 0o755);
}

const MINUTE = { timeoutMs: 60_000 };

describe.skipIf(process.platform !== "linux")("a tool", () => {
  /** Resolves once the script has said so: it writes into a pipe that has a name. */
  function spoken(): Promise<string> {
    execFileSync("mkfifo", [join(folder, "said")]);
    return readFile(join(folder, "said"), "utf8");
  }
  const SAY = `echo "$$" > "$(dirname "$0")/said"`;
  const isAlive = (pid: number) => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  test("42: that sleeps is ended when its time is over, and is gone when that is told", async () => {
    await given("mkfs", SAY, "exec sleep 600");
    const said = spoken();
    const outcome = tools.run("mkfs", [], MINUTE).catch((error: unknown) => error);
    const pid = Number(await said);
    expect(isAlive(pid)).toBe(true);

    await scheduler.runFor(60_000);

    expect(await outcome).toMatchObject({
      code: "TimedOut",
      message: expect.stringContaining("longer than 60000 ms"),
    });
    expect(isAlive(pid)).toBe(false);
  });

  test("42: that does not listen to SIGTERM is killed 5 s later", async () => {
    await given("mkfs", "trap '' TERM", SAY, "exec sleep 600");
    const said = spoken();
    const outcome = tools.run("mkfs", [], MINUTE).catch((error: unknown) => error);
    const pid = Number(await said);

    await scheduler.runFor(60_000);
    expect(isAlive(pid)).toBe(true);
    await scheduler.runFor(5_000);

    expect(await outcome).toMatchObject({ code: "TimedOut" });
    expect(isAlive(pid)).toBe(false);
  });

  test("that its caller no longer wants is ended", async () => {
    await given("copy", SAY, "exec sleep 600");
    const said = spoken();
    const stop = new AbortController();
    const outcome = tools
      .run("copy", [], { ...MINUTE, signal: stop.signal })
      .catch((error: unknown) => error);
    const pid = Number(await said);

    stop.abort();

    expect(await outcome).toMatchObject({
      code: "TimedOut",
      message: expect.stringContaining("was stopped"),
    });
    expect(isAlive(pid)).toBe(false);
  });

  test.each([
    ["mkfs: No space left on device", "NoSpace"],
    ["resize2fs: Operation not permitted", "NotPermitted"],
    ["umount: target is busy.", "Busy"],
    ["losetup: No such file or directory", "NotFound"],
    ["something else", "Failed"],
  ])("that says %j has failed as %s", async (words, code) => {
    await given("tool", `echo "${words}" >&2`, "exit 4");

    await expect(tools.run("tool", [], MINUTE)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(`tool exited with 4: ${words}`),
    });
    expect((await tools.run("tool", [], { ...MINUTE, ok: [4] })).exitCode).toBe(4);
  });

  test("that talks without end is heard up to a bound; words with spaces and quotes are one argument each", async () => {
    await given("chatter", "head -c 3000000 /dev/zero | tr '\\\\0' x");
    await given("args", `printf '%s|' "$#" "$@"`);

    expect((await tools.run("chatter", [], MINUTE)).stdout.length).toBeLessThan(256 * 1_024);
    expect((await tools.run("args", ["a b", "$(reboot)", "'", ";"], MINUTE)).stdout).toBe(
      "4|a b|$(reboot)|'|;|",
    );
  });

  test("that is missing, or cannot be run, is an error and not the end of the process", async () => {
    await writeFile(join(folder, "broken"), "not a program");

    await expect(tools.run("missing", [], MINUTE)).rejects.toMatchObject({ code: "NoTool" });
    await expect(tools.run("broken", [], MINUTE)).rejects.toMatchObject({ code: "Failed" });
  });
});
