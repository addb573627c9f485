import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { WAITING_REASONS } from "../src/attach-detach/waiting.ts";
import { WAITING_REASONS as ATTACHER_WAITING_REASONS } from "../src/attacher/waiting.ts";
import { createProgram } from "../src/cli/program.ts";
import { CLIENT_CODES, SERVER_CODES } from "../src/kube/errors.ts";
import { WAITING_REASONS as NODE_WAITING_REASONS } from "../src/node/waiting.ts";
import { REASONS } from "../src/views/reasons/reasons.ts";
import type { Words } from "../src/views/reasons/words.ts";

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
    const upstream =
      "csi|rest_client|workqueue|leader_election|apiserver|attach_?detach_controller|storage|" +
      "kubelet_volume|plugin_manager|reconstruct_volume|volume_manager|volume_operation";
    const pattern = new RegExp(`"((?:mooring|${upstream})_[a-z_]+)"`, "g");
    const made = new Set(
      productionSources().flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name)),
    );

    expect([...made].sort()).toEqual(codesInTables("docs/reference/metrics.md"));
  });

  test("every error code is described, and every code described exists", () => {
    expect(codesInTables("docs/reference/errors.md")).toEqual([...SERVER_CODES, ...CLIENT_CODES].sort());
  });

  test("so is every code of the rooms' own errors", () => {
    const rooms = readdirSync(join(ROOT, "src")).filter((room) => room !== "sim");
    const made = rooms.flatMap((room) => errorCodesOf(room).map((code) => `${room} ${code}`));
    const rows = [...read("docs/reference/errors.md").matchAll(/^\| ([a-z-]+) \| `(\w+)` \|/gm)];
    const described = rows.map(([, room, code]) => `${room} ${code}`);

    expect(made.length).toBeGreaterThan(40);
    expect(described.sort()).toEqual([...new Set(made)].sort());
  });

  test("every reason of `mooring why` is described with its link, and no other", () => {
    const rows = [...read("docs/reference/why.md").matchAll(/^\| `([^`]+)` \| (\w+) \| (\S+) \|/gm)];

    expect(rows.map(([, reason, link, waiting]) => [reason, link, waiting])).toEqual(
      Object.entries<Words>(REASONS).map(([reason, { link, waiting = "–" }]) => [reason, link, waiting]),
    );
  });

  test("every other name for the same thing is one that the controller or the attacher has", () => {
    const known = new Set<string>([...WAITING_REASONS, ...ATTACHER_WAITING_REASONS, ...NODE_WAITING_REASONS]);
    const named = Object.values<Words>(REASONS).flatMap(({ waiting }) => waiting ?? []);

    expect(named.filter((reason) => !known.has(reason))).toEqual([]);
  });
});

/** Members may have a comment each, and a comment may have a semicolon. */
const UNION = /export type \w+ErrorCode =((?:\s*(?:\/\*\*(?:(?!\*\/)[^])*\*\/\s*)?\| "\w+")+)/g;

/** Members of the room's `…ErrorCode` unions. */
function errorCodesOf(room: string): string[] {
  return productionSources(room)
    .flatMap((text) => [...text.matchAll(UNION)])
    .flatMap(([, union = ""]) => [...union.matchAll(/^ *\| "(\w+)"/gm)].map(([, code]) => code ?? ""));
}

describe("reference of the controller", () => {
  test("every command has its flags with their defaults, and every flag described exists", () => {
    const described = [
      ...read("docs/reference/flags.md").matchAll(/^## (mooring.*)$|^\| `(-[^`]+)` \| (.*?) \|/gm),
    ];
    let command = "";
    const rows = described.flatMap(([, heading, flags, fallback = ""]) => {
      if (heading !== undefined) command = heading;
      return flags === undefined ? [] : [`${command}: ${flags} = ${fallback.replaceAll("`", "")}`];
    });

    expect(rows.sort()).toEqual(flagsOf(createProgram(), "mooring").sort());
  });

  test("every command has its heading, and every heading is a command", () => {
    const headings = [...read("docs/reference/flags.md").matchAll(/^## (mooring.*)$/gm)].map(
      ([, path]) => path,
    );

    expect(headings.sort()).toEqual(commandsOf(createProgram(), "mooring").sort());
  });

  test("flags that the guides and pages name exist in some command", () => {
    const known = new Set(flagsOf(createProgram(), "").flatMap((row) => row.match(/--[a-z][a-z-]+/g) ?? []));
    const pages = [...markdownIn("docs/guides"), "README.md"];
    const named = pages.flatMap((page) =>
      [...read(page).matchAll(/^ *(?:\$ )?(?:bin\/)?mooring [^\n]*/gm)].flatMap(([line]) =>
        (line.split(" | ")[0]?.match(/(?<= )--[a-z][a-z-]+/g) ?? []).map((flag) => `${page}: ${flag}`),
      ),
    );

    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((row) => !known.has(row.split(": ")[1] ?? ""))).toEqual([]);
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

/** `mooring get`, of every command that does something itself; the program's own flags are under `mooring`. */
function commandsOf(command: Command, path: string): string[] {
  const isShown = !command.name().startsWith("__");
  const leads = command.commands.length > 0 && command.options.length === 0;
  const below = command.commands.flatMap((child) => commandsOf(child, `${path} ${child.name()}`));
  return [...(isShown && !leads ? [path] : []), ...below];
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

  const section = read("ARCHITECTURE.md").split("\n## Dependencies\n")[1] ?? "";
  const named = [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name ?? "");

  expect(named.sort()).toEqual(Object.keys(dependencies).sort());
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
