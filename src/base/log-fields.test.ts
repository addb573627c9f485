import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createSeededRandom } from "./seeded-random.ts";
import { createPinoLogger } from "./pino-log.ts";

/** Every key of every object in a text of JSON, as written: a parser forgets all but the last of two. */
function keysOf(json: string): string[][] {
  const objects: string[][] = [];
  const open: (string[] | undefined)[] = [];
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"\s*:?|[{}[\]]/g)) {
    if (token === "{") open.push([]);
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") objects.push(open.pop() ?? []);
    else if (token.endsWith(":")) open.at(-1)?.push(JSON.parse(token.slice(0, -1)) as string);
  }
  return objects;
}

function strict(line: string): Record<string, unknown> {
  for (const keys of keysOf(line)) expect(keys).toEqual([...new Set(keys)]);
  return JSON.parse(line) as Record<string, unknown>;
}

function given(fields = {}) {
  const lines: string[] = [];
  const log = createPinoLogger({
    level: "debug",
    fields,
    destination: { write: (line: string) => void lines.push(line) },
  });
  return { lines, log };
}

test("the strict reader sees a key that is there twice, at any depth", () => {
  expect(() => strict('{"a":1,"a":2}')).toThrow();
  expect(() => strict('[{"b":{"a":"}","a":2}}]')).toThrow();
  expect(strict('{"a":{"a":"\\"a\\":1"},"b":[{"a":1},{"a":2}]}')).toBeDefined();
});

test("a field called like a part of the line keeps its value under another name", () => {
  const { lines, log } = given({ time: "noon" });

  log.with({ volume: "v", level: 3 }).warn("csi call refused", { message: "detail", volume: "w" });

  expect(strict(lines[0] ?? "")).toMatchObject({
    level: "warn",
    message: "csi call refused",
    volume: "w",
    "field.message": "detail",
    "field.level": 3,
    "field.time": "noon",
  });
});

test("whatever fields a logger, its children and the line have: each key once", () => {
  const names = ["level", "time", "message", "msg", "err", "error", "pid", "hostname", "v", "volume", "pod"];
  const random = createSeededRandom(7);
  const some = () =>
    Object.fromEntries(
      names
        .filter(() => random.float() < 0.4)
        .map((name) => [name, random.float() < 0.5 ? new Error(name) : { name, message: 1, time: 2 }]),
    );
  for (let round = 0; round < 500; round++) {
    const { lines, log } = given(some());
    log.with(some()).with(some()).error("failed", some());
    const line = strict(lines[0] ?? "");
    expect([line["level"], line["message"]]).toEqual(["error", "failed"]);
  }
});

test("no line of ours has a field that the logger would have to rename", () => {
  const source = (directory: string): string[] =>
    readdirSync(directory, { withFileTypes: true, recursive: true })
      .filter(({ name }) => name.endsWith(".ts") && !/\.(test|testing)\.ts$/.test(name))
      .map(({ parentPath, name }) => join(parentPath, name));
  const wrong = source("src").flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/log\.(?:debug|info|warn|error|with)\([^;]*?\{([^{};]*)\}/g)]
      .filter(([, fields = ""]) => /(^|,)\s*(level|time|message)\s*(:|,|$)/.test(fields))
      .map(([call]) => `${file}: ${call}`),
  );

  expect(wrong).toEqual([]);
});
