import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

/**
 * The specifications end in numbered scenarios, and the test that proves one begins its name with the number: "31: ...",
 * "19, 47: ...". None of them may get lost when tests are moved or rewritten.
 */

const ROOT = resolve(import.meta.dirname, "..");

for (const [what, count, places, tables] of [
  ["the loop driver", 45, ["src/driver/", "src/csi/short-", "test/e2e/driver", "test/long/driver"], []],
  ["the attacher", 80, ["src/attacher/", "test/long/attacher"], []],
  [
    "the attach/detach controller",
    125,
    ["src/attach-detach/", "src/operations/", "test/e2e/controller"],
    // Rows of tables in src/cli/commands/controller.test.ts, src/volumes/translation and src/operations/key.test.ts.
    [107, 112, 114, 117, 122],
  ],
] as const) {
  test(`every one of the ${count} scenarios of ${what} has a test that bears its number`, () => {
    const proven = new Set([...numbersIn(places.flatMap(testsAt)), ...tables]);

    expect(Array.from({ length: count }, (_, index) => index + 1).filter((n) => !proven.has(n))).toEqual([]);
    expect([...proven].filter((n) => n < 1 || n > count)).toEqual([]);
  });
}

/** Test files of a folder whose paths begin like this. */
function testsAt(start: string): string[] {
  const folder = join(ROOT, start.slice(0, start.lastIndexOf("/")));
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith(".test.ts") && path.startsWith(join(ROOT, start)));
}

/** At the start of a text, or of a second claim in it, `"75, 72: it waits ...; 76: it ends"`, or spelled out. */
const LABEL = /(?:["'`]|; )(\d+(?:, \d+)*): |\bscenario (\d+)\b/g;

function numbersIn(paths: readonly string[]): Set<number> {
  const labels = paths.flatMap((path) => [...readFileSync(path, "utf8").matchAll(LABEL)]);
  return new Set(labels.flatMap(([, first, second]) => (first ?? second ?? "").split(", ").map(Number)));
}
