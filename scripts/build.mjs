// Installs and builds when that is due, and only then: both are asked before every task.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What went wrong has been printed by the tool itself; the message says which tool it was. */
class BuildError extends Error {}

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** `npm ci`, unless npm finished an install after the lock file last changed (it writes this file last). */
export function ensureInstalled() {
  orExit(installIfDue);
}

function installIfDue() {
  const installed = join(root, "node_modules", ".package-lock.json");
  const lock = join(root, "package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], "install");
}

/**
 * `tsc`, unless everything in dist/ is newer than every source. `types` says who answers for them: `checked`, the build that made
 * dist/; `any`, nobody has to, but a build that is due checks them; `elsewhere`, the caller: `npm test` checks them beside its
 * other checks, and all of it waits for the build, which takes 11 s of processor time that way instead of 28.
 */
export function ensureBuilt({ types = "checked" } = {}) {
  orExit(() => buildIfDue(types));
}

function buildIfDue(types) {
  const stamp = join(root, "dist", ".built");
  const fresh = existsSync(stamp) && newestMtimeMs() <= statSync(stamp).mtimeMs;
  if (fresh && (types !== "checked" || !readFileSync(stamp, "utf8").includes(UNCHECKED))) return;
  // Stamped with the time before the build, so that a source saved during it counts as newer.
  const startedAt = new Date().toISOString();
  const unchecked = types === "elsewhere";
  const flags = unchecked ? ["--noCheck"] : [];
  withLock(() => run(process.execPath, [tsc(), "-p", "tsconfig.build.json", ...flags], "build"));
  writeFileSync(stamp, unchecked ? `${startedAt} ${UNCHECKED}` : startedAt);
}

const UNCHECKED = "types unchecked";

function orExit(work) {
  try {
    work();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

function tsc() {
  return join(root, "node_modules", "typescript", "bin", "tsc");
}

function newestMtimeMs() {
  let newest = 0;
  for (const start of [
    "src",
    "bench",
    "conformance",
    "tsconfig.json",
    "tsconfig.build.json",
    "package-lock.json",
  ]) {
    const path = join(root, start);
    if (!existsSync(path)) continue;
    const files = statSync(path).isDirectory()
      ? readdirSync(path, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name))
      : [path];
    for (const file of files) newest = Math.max(newest, statSync(file).mtimeMs);
  }
  return newest;
}

/** Two commands started at once must not write dist/ at once; the second waits, at most a minute. */
function withLock(work) {
  const lock = join(root, "dist", ".building");
  mkdirSync(join(root, "dist"), { recursive: true });
  const deadline = Date.now() + 60_000;
  for (;;) {
    try {
      mkdirSync(lock);
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      if (Date.now() > deadline) {
        rmSync(lock, { recursive: true, force: true }); // left by a killed build
        continue;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    }
  }
  try {
    work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function run(command, args, what) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (error) throw error;
  // Thrown, not exited: whoever holds the build lock has to give it back first.
  if (status !== 0)
    throw new BuildError(`mooring: ${what} failed (${command} ${args.join(" ")} exited ${status})`);
}
