import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { EVENT_REASONS, WAITING_REASONS } from "../src/companions/waiting.ts";

const ROOT = resolve(import.meta.dirname, "..");
const PAGE = readFileSync(join(ROOT, "docs/reference/storage.md"), "utf8");

const described = (pattern: RegExp) => [...PAGE.matchAll(pattern)].map(([, reason]) => reason).sort();

test("every reason of the storage companions to wait is described once, and no other", () => {
  expect(described(/^\| `([a-z-]+)`/gm)).toEqual([...WAITING_REASONS].sort());
});

test("every event of the storage companions is described once, and no other", () => {
  expect(described(/^\| `([A-Z]\w+)`/gm)).toEqual([...EVENT_REASONS].sort());
});

test("every reason on the lists is said somewhere", () => {
  const said = ["binder", "provisioner", "resizer", "snapshotter"]
    .flatMap((folder) => readdirSync(join(ROOT, "src/companions", folder)).map((name) => join(folder, name)))
    .filter((path) => path.endsWith(".ts") && !/\.(test|testing)\.ts$/.test(path))
    .map((path) => readFileSync(join(ROOT, "src/companions", path), "utf8"))
    .join("\n");

  const silent = [...WAITING_REASONS, ...EVENT_REASONS].filter((reason) => !said.includes(`"${reason}"`));

  expect(silent).toEqual([]);
});
