import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { CLIENT_CODES, SERVER_CODES } from "../src/kube/errors.ts";

/** What the documents say, checked against the source in both directions. */

const ROOT = resolve(import.meta.dirname, "..");

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** First cells of a Markdown table, where they are code. */
function codesInTables(path: string): string[] {
  return [...read(path).matchAll(/^\| `([^`]+)`/gm)].map(([, code]) => code ?? "").sort();
}

function productionSources(): string[] {
  return readdirSync(join(ROOT, "src"), { recursive: true, withFileTypes: true })
    .filter(({ name }) => name.endsWith(".ts") && !/\.(test|testing)\.ts$/.test(name))
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8"));
}

describe("reference", () => {
  test("every metric is described, and every metric described exists", () => {
    const pattern = /"((?:mooring|rest_client|workqueue|leader_election|apiserver)_[a-z_]+)"/g;
    const made = new Set(
      productionSources().flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name)),
    );

    expect([...made].sort()).toEqual(codesInTables("docs/reference/metrics.md"));
  });

  test("every error code is described, and every code described exists", () => {
    expect(codesInTables("docs/reference/errors.md")).toEqual([...SERVER_CODES, ...CLIENT_CODES].sort());
  });
});

describe("links", () => {
  const documents = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ...markdownIn("docs"),
  ];

  for (const document of documents) {
    test(`${document} points only at files that exist`, () => {
      const targets = [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(
        ([, target]) => target ?? "",
      );
      const missing = targets.filter((target) => {
        const path = resolve(ROOT, document, "..", target);
        return !exists(path);
      });

      expect(missing).toEqual([]);
    });
  }
});

test("ARCHITECTURE gives every dependency its reason, and names none that is gone", () => {
  const { dependencies } = JSON.parse(read("package.json")) as { dependencies: Record<string, string> };

  const named = codesInTables("ARCHITECTURE.md").filter((code) => !code.endsWith("/"));

  expect(
    named.filter(
      (name) => !name.startsWith("mooring ") && !name.startsWith("src/") && !name.startsWith("test/"),
    ),
  ).toEqual(Object.keys(dependencies).sort());
});

test("ARCHITECTURE names every room, and no other", () => {
  const rooms = readdirSync(join(ROOT, "src")).map((room) => `${room}/`);

  const named = codesInTables("ARCHITECTURE.md").filter((code) => code.endsWith("/"));

  expect(named).toEqual(rooms.sort());
});

function markdownIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter(({ name }) => name.endsWith(".md"))
    .map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length + 1));
}

function exists(path: string): boolean {
  try {
    readdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOTDIR";
  }
}
