// `npm start`, `npm test` and friends: each installs and builds first when that is due.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { ensureBuilt, ensureInstalled, root } from "./build.mjs";

const bin = (name) => join(root, "node_modules", ".bin", name);

/** The checks of `npm test`, in two lanes for two cores, of about the same length. */
const LANES = [
  [
    { name: "types", command: bin("tsc"), args: ["-p", "tsconfig.json"] },
    { name: "dead code", command: bin("knip"), args: [] },
    { name: "format", command: bin("prettier"), args: ["--check", "--log-level=warn", "."] },
    vitest("unit"),
    // A quarter of the seeds, which is what five minutes have room for; `.ci/run` runs them all.
    vitest("sim", { MOORING_SEEDS: process.env.MOORING_SEEDS ?? "0.25" }),
  ],
  [{ name: "lint", command: bin("eslint"), args: ["--max-warnings=0", "."] }, vitest("e2e")],
];

function vitest(project, env = {}) {
  return { name: project, command: bin("vitest"), args: ["run", "--project", project], env, counts: true };
}

const IN_FULL = { MOORING_EVERY_STEP: "1", MOORING_CRASH_ROUNDS: "200" };

const tasks = {
  start: (args) => exec(process.execPath, [join(root, "bin", "mooring"), "up", ...args]),
  build: () => undefined,
  unit: (args) => exec(bin("vitest"), ["run", "--project", "unit", ...args]),
  sim: (args) => exec(bin("vitest"), ["run", "--project", "sim", ...args]),
  e2e: (args) => exec(bin("vitest"), ["run", "--project", "e2e", ...args]),
  // Every benchmark on tiny input: a minute of processor time that `npm test` does not have.
  "test:bench": (args) => exec(bin("vitest"), ["run", "--project", "bench", ...args]),
  // Proofs with real processes that take longer than `npm test` may.
  "test:long": (args) => exec(bin("vitest"), ["run", "--project", "long", ...args]),
  // What `npm test` shows in a few rounds, in full: every step a process can die at, 200 crashes of the store.
  proofs: (args) =>
    exec(bin("vitest"), ["run", "--project", "long", "--project", "e2e", "crash", "node.test", ...args], {
      env: { ...process.env, ...IN_FULL },
    }),
  lint: (args) => exec(bin("eslint"), ["--max-warnings=0", ".", ...args]),
  // src/csi/gen from proto/; buf finds the plugin on the path.
  generate: () =>
    exec(bin("buf"), ["generate"], {
      cwd: join(root, "proto"),
      env: { ...process.env, PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}` },
    }),
  // src/apiserver/field-tables from the published definitions; the script says where those come from.
  "generate:schema": (args) => exec(process.execPath, [join(root, "scripts/generate-schema.mjs"), ...args]),
  format: (args) => exec(bin("prettier"), ["--write", "--log-level=warn", ".", ...args]),
  bench: (args) =>
    exec(process.execPath, [
      "--expose-gc",
      "--max-old-space-size=4096",
      join(root, "dist/bench/main.js"),
      ...args,
    ]),
  // One safety rule taken out at a time: the simulator has to see it.
  mutants: (args) => exec(process.execPath, [join(root, "scripts/mutants.mjs"), ...args]),
  conformance: (args) => exec(process.execPath, [join(root, "dist/conformance/main.js"), ...args]),
  "bench:peer": (args) => exec(process.execPath, [join(root, "dist/conformance/bench-peer.js"), ...args]),
  test: testAll,
};

const [task, ...args] = process.argv.slice(2);
if (!Object.hasOwn(tasks, task ?? "")) {
  process.stderr.write(`task: ${task ?? "(none)"} is not one of ${Object.keys(tasks).join(", ")}\n`);
  process.exit(2);
}
ensureInstalled();
// What is generated is a source of the build.
if (!task.startsWith("generate")) ensureBuilt({ types: task === "test" ? "elsewhere" : "checked" });
await tasks[task](args);

function exec(command, args, options = {}) {
  const child = spawn(command, args, { cwd: root, stdio: "inherit", ...options });
  // The terminal sends Ctrl-C to the child too; we only wait for it to finish its clean-up.
  for (const signal of ["SIGINT", "SIGTERM"])
    process.on(signal, () => signal === "SIGTERM" && child.kill(signal));
  child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}

async function testAll() {
  const results = (await Promise.all(LANES.map(runLane))).flat();
  for (const { leftOut } of results) for (const line of leftOut) console.log(line);
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  console.log(`${passed} passed, ${failed} failed`);
  if (results.some((result) => !result.ok)) process.exit(1);
}

async function runLane(lane) {
  const results = [];
  for (const check of lane) results.push(await runCheck(check));
  return results;
}

async function runCheck({ name, command, args, env, counts }) {
  const scratch = mkdtempSync(join(tmpdir(), "mooring-test-"));
  const report = join(scratch, "report.json");
  const reporters = counts ? ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`] : [];
  const startedAt = Date.now();
  const { status, output } = await capture(command, [...args, ...reporters], env);
  const { passed, failed } = counts
    ? readCounts(report)
    : { passed: status === 0 ? 1 : 0, failed: status === 0 ? 0 : 1 };
  rmSync(scratch, { recursive: true, force: true });
  // A runner that found nothing to run has not passed, whatever it exits with.
  const ok = status === 0 && passed > 0;
  const took = ((Date.now() - startedAt) / 1000).toFixed(1);
  console.log(
    `${ok ? "ok  " : "FAIL"} ${name.padEnd(10)} ${took.padStart(6)} s${counts ? `  ${passed} tests` : ""}`,
  );
  if (!ok) console.log(output);
  const leftOut = output.split("\n").filter((line) => line.startsWith("left out: "));
  return { ok, passed, failed, leftOut: [...new Set(leftOut)] };
}

function readCounts(report) {
  try {
    const { numPassedTests, numFailedTests, numFailedTestSuites } = JSON.parse(readFileSync(report, "utf8"));
    return { passed: numPassedTests, failed: Math.max(numFailedTests, numFailedTestSuites > 0 ? 1 : 0) };
  } catch {
    return { passed: 0, failed: 1 };
  }
}

function capture(command, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...process.env, ...env, FORCE_COLOR: "0", NO_COLOR: "1" },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, output }));
  });
}
