// Around `npm pack`: dist/ as the sources of today make it, and the commit they are from.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ensureBuilt, ensureInstalled, root } from "./build.mjs";

/** Read by `mooring version`. Only there while packing: a checkout would soon be another commit. */
const COMMIT = join(root, "dist", "commit");

if (process.argv[2] === "before") {
  ensureInstalled();
  ensureBuilt();
  removeLeftovers();
  const commit = commitOf();
  if (commit !== undefined) writeFileSync(COMMIT, `${commit}\n`);
} else {
  rmSync(COMMIT, { force: true });
}

/** The compiler never removes what it once wrote: a source that was moved would be shipped twice. */
function removeLeftovers() {
  const dist = join(root, "dist");
  const entries = readdirSync(join(dist, "src"), { recursive: true, withFileTypes: true });
  for (const file of entries.filter((entry) => entry.isFile())) {
    const path = join(file.parentPath, file.name);
    const source = join(root, relative(dist, path).replace(/\.js(\.map)?$/, ".ts"));
    if (!existsSync(source)) rmSync(path);
  }
}

/** MOORING_COMMIT where there is no git, as in a container build. Changes that are not committed are said so. */
function commitOf() {
  const given = process.env.MOORING_COMMIT;
  if (given) return given;
  const commit = git("rev-parse", "HEAD");
  if (commit === undefined || commit === "") return undefined;
  return git("status", "--porcelain", "--untracked-files=no") === "" ? commit : `${commit}-dirty`;
}

function git(...args) {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
