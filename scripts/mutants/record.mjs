// What was found of each mutant, so that a run of hours can be done in pieces: kept beside the build, and true for that build only.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../build.mjs";

export function openRecord(dist) {
  const path = join(dist, "mutants.json");
  const build = fingerprintOf(join(dist, "src"));
  const read = () => (existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {});

  /** A mutant that was changed, or is run with another plan or test, is another mutant. */
  function keyOf({ id, profile = "usual", test, changes, without = [] }, profiles) {
    const judge = test === undefined ? profiles[profile].options : readFileSync(join(root, test), "utf8");
    const text = JSON.stringify([build, id, changes, without, judge]);
    return createHash("sha256").update(text).digest("hex");
  }

  return {
    get(mutant, profiles) {
      const { key, verdict } = read()[mutant.id] ?? {};
      return key === keyOf(mutant, profiles) ? verdict : undefined;
    },
    /** Read again: another process may be at other mutants. */
    set(mutant, profiles, verdict) {
      const record = { ...read(), [mutant.id]: { key: keyOf(mutant, profiles), verdict } };
      writeFileSync(path, JSON.stringify(record, undefined, 1));
    },
  };
}

function fingerprintOf(directory) {
  const hash = createHash("sha256");
  const files = readdirSync(directory, { recursive: true }).filter((name) => name.endsWith(".js"));
  for (const name of files.sort()) hash.update(name).update(readFileSync(join(directory, name)));
  return hash.digest("hex");
}
