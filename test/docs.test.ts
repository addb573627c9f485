import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { WAITING_REASONS } from "../src/attach-detach/waiting.ts";
import { createProgram } from "../src/cli/program.ts";
import { CLIENT_CODES, SERVER_CODES } from "../src/kube/errors.ts";
import { WAITING_REASONS as NODE_WAITING_REASONS } from "../src/node/waiting.ts";

/** What the documents say, checked against the source in both directions. */

const ROOT = resolve(import.meta.dirname, "..");

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** First cells of a Markdown table, where they are code. */
function codesInTables(path: string): string[] {
  return [...read(path).matchAll(/^\| `([^`]+)`/gm)].map(([, code]) => code ?? "").sort();
}

function productionSources(room = ""): string[] {
  return readdirSync(join(ROOT, "src", room), { recursive: true, withFileTypes: true })
    .filter(({ name }) => name.endsWith(".ts") && !/\.(test|testing)\.ts$/.test(name))
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8"));
}

describe("reference", () => {
  test("every metric is described, and every metric described exists", () => {
    const pattern =
      /"((?:mooring|csi|rest_client|workqueue|leader_election|apiserver|attach_?detach_controller|storage)_[a-z_]+)"/g;
    const made = new Set(
      productionSources().flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name)),
    );

    expect([...made].sort()).toEqual(codesInTables("docs/reference/metrics.md"));
  });

  test("every error code is described, and every code described exists", () => {
    expect(codesInTables("docs/reference/errors.md")).toEqual([...SERVER_CODES, ...CLIENT_CODES].sort());
  });
});

describe("reference of the controller", () => {
  test("every command has its flags with their defaults, and every flag described exists", () => {
    const described = [
      ...read("docs/reference/flags.md").matchAll(/^## (mooring .*)$|^\| `(-[^`]+)` \| (.*?) \|/gm),
    ];
    let command = "";
    const rows = described.flatMap(([, heading, flags, fallback = ""]) => {
      if (heading !== undefined) command = heading;
      return flags === undefined ? [] : [`${command}: ${flags} = ${fallback.replaceAll("`", "")}`];
    });

    expect(rows.sort()).toEqual(flagsOf(createProgram(), "mooring").sort());
  });

  test("every event reason is described, and every reason described is recorded somewhere", () => {
    const sources = ["attach-detach", "kube/election", "node"].flatMap((room) => productionSources(room));
    const recorded = sources.flatMap((text) =>
      [...text.matchAll(/reason: "([A-Z]\w+)"/g)].map(([, reason]) => reason),
    );

    expect([...new Set(recorded)].sort()).toEqual(codesInTables("docs/reference/events.md"));
  });

  test("every reason to wait is described once, and no other", () => {
    expect(codesInTables("docs/reference/waiting.md")).toEqual(
      [...WAITING_REASONS, ...NODE_WAITING_REASONS].sort(),
    );
  });
});

/** `mooring version: -o, --output <format> = text`, of every command below. */
function flagsOf(command: Command, path: string): string[] {
  const own = command.options.map(({ flags, defaultValue, defaultValueDescription }) => {
    const fallback = defaultValueDescription ?? (defaultValue === undefined ? "–" : String(defaultValue));
    return `${path}: ${flags} = ${fallback}`;
  });
  return [...own, ...command.commands.flatMap((child) => flagsOf(child, `${path} ${child.name()}`))];
}

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
