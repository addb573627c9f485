import { mkdtemp, rm, watch, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ProgramRun } from "../../src/kube/config/world.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";

const world = createLocalWorld();
let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "local-world-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const node = (script: string, options: Partial<ProgramRun> = {}): ProgramRun => ({
  command: process.execPath,
  args: ["-e", script],
  env: {},
  maxStdoutBytes: 1_000,
  interactive: false,
  signal: new AbortController().signal,
  ...options,
});

describe("reading a file", () => {
  test("gives its text up to the bound, and EFBIG past it", async () => {
    const path = join(dir, "config");
    await writeFile(path, "größer");

    expect(await world.readFile(path, { maxBytes: 8 })).toBe("größer");
    await expect(world.readFile(path, { maxBytes: 7 })).rejects.toMatchObject({ code: "EFBIG" });
  });

  test("that is none keeps the system's code", async () => {
    await expect(world.readFile(join(dir, "gone"), { maxBytes: 1 })).rejects.toMatchObject({
      code: "ENOENT",
    });
    await expect(world.readFile(dir, { maxBytes: 1 })).rejects.toMatchObject({ code: "EISDIR" });
  });

  test("without an end stops at the bound", async () => {
    await expect(world.readFile("/dev/zero", { maxBytes: 100_000 })).rejects.toMatchObject({ code: "EFBIG" });
  });
});

describe("running a program", () => {
  test("gives output and exit code; arguments go through no shell, variables are only those given", async () => {
    const script = `console.log(process.argv[1], process.env.A, process.env.HOME); console.error("oops"); process.exit(3)`;
    const run = node(script, { env: { A: "b c" } });

    const result = await world.runProgram({ ...run, args: [...run.args, "$(id) *"] });

    expect(result).toEqual({ exitCode: 3, stdout: "$(id) * b c undefined\n", stderr: "oops\n" });
  });

  test("that does not exist, or may not be run, is told by its code", async () => {
    const plain = join(dir, "plain");
    await writeFile(plain, "", { mode: 0o644 });

    await expect(world.runProgram(node("", { command: "no-such-program" }))).rejects.toMatchObject({
      code: "ENOENT",
    });
    await expect(world.runProgram(node("", { command: plain }))).rejects.toMatchObject({ code: "EACCES" });
  });

  test("that talks without end is stopped", async () => {
    const script = `setInterval(() => console.log("x".repeat(100)), 1)`;

    await expect(world.runProgram(node(script))).rejects.toMatchObject({ code: "EFBIG" });
  });

  test("that complains without end keeps the end of it", async () => {
    const script = `process.stderr.write("x".repeat(1_000_000) + "the end")`;

    const { stderr } = await world.runProgram(node(script));

    expect(stderr.endsWith("the end")).toBe(true);
    expect(stderr.length).toBeLessThan(200_000);
  });

  test("that reads stdin finds it empty and does not wait", async () => {
    const { stdout } = await world.runProgram(
      node(`process.stdin.on("end", () => console.log("end")).resume()`),
    );

    expect(stdout).toBe("end\n");
  });

  test("that hangs dies with its children when the signal aborts", async () => {
    // The grandchild holds the same stdout: the run can only settle before the 2 s of mercy if it is gone too.
    const grandchild = `require("fs").writeFileSync(${JSON.stringify(join(dir, "up"))}, ""); setInterval(() => {}, 1000)`;
    const script = `require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(grandchild)}], { stdio: "inherit" }); setInterval(() => {}, 1000)`;
    const deadline = new AbortController();
    const started = watch(dir)[Symbol.asyncIterator]().next();
    const running = world.runProgram(node(script, { signal: deadline.signal }));
    await started;

    const abortedMs = performance.now();
    deadline.abort(new Error("deadline"));

    await expect(running).rejects.toThrow("deadline");
    expect(performance.now() - abortedMs).toBeLessThan(1_900);
  });

  test("that will not listen is killed", async () => {
    const up = JSON.stringify(join(dir, "up"));
    const script = `process.on("SIGTERM", () => {}); require("fs").writeFileSync(${up}, ""); setInterval(() => {}, 1000)`;
    const deadline = new AbortController();
    const started = watch(dir)[Symbol.asyncIterator]().next();
    const running = world.runProgram(node(script, { signal: deadline.signal }));
    await started;

    deadline.abort(new Error("deadline"));

    await expect(running).rejects.toThrow("deadline");
  });

  test("is not even started when the signal has aborted", async () => {
    const run = node("", { command: "no-such-program", signal: AbortSignal.abort(new Error("too late")) });

    await expect(world.runProgram(run)).rejects.toThrow("too late");
  });
});
