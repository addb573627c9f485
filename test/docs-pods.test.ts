import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

/** What docs/reference/pods.md says of the scheduler and the pod starter, checked against the source in both directions. */

const ROOT = resolve(import.meta.dirname, "..");
const PAGE = readFileSync(join(ROOT, "docs/reference/pods.md"), "utf8");

const sources = ["scheduler", "pod-starter"].flatMap((folder) => {
  const path = join(ROOT, "src/companions", folder);
  const files = readdirSync(path).filter((name) => /(?<!\.test|\.testing)\.ts$/.test(name));
  return files.map((name) => readFileSync(join(path, name), "utf8"));
});

/** First cells of the tables below a heading. */
function codesBelow(heading: string): string[] {
  const section = PAGE.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, code]) => code ?? "").sort();
}

test("every event reason is described, and every reason described is recorded somewhere", () => {
  const recorded = sources.flatMap((text) => [...text.matchAll(/reason: "([A-Z]\w+)"/g)]);

  expect([...new Set(recorded.map(([, reason]) => reason))].sort()).toEqual(codesBelow("Events"));
});

test("every reason of the PodScheduled condition is described, and no other", () => {
  const written = sources.flatMap((text) => [...text.matchAll(/because: "([A-Z]\w+)"/g)]);

  expect([...new Set(written.map(([, reason]) => reason))].sort()).toEqual(
    codesBelow("Why a pod has no node"),
  );
});
