import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { TABLES, TABLES_DIGEST } from "./tables.ts";

type Field = Readonly<Record<string, unknown>>;
type Definition = { readonly fields: Readonly<Record<string, Field>>; readonly gvk?: readonly string[] };

const pieces = Object.entries(TABLES).map(
  ([name, { text, kinds }]) =>
    ({ name, text, kinds, table: JSON.parse(text) as Record<string, Definition> }) as const,
);

test("the tables are what the generator wrote", () => {
  const digest = createHash("sha256");
  for (const { text } of pieces) digest.update(text);

  expect(digest.digest("hex"), "run npm run generate:schema; a table is not changed by hand").toBe(
    TABLES_DIGEST,
  );
});

test("every table is in the index, and has one definition a line", () => {
  const files = readdirSync(import.meta.dirname).filter((file) => !/^tables\./.test(file));

  expect(files).toHaveLength(pieces.length);
  for (const { text, table } of pieces) expect(text.split("\n")).toHaveLength(Object.keys(table).length + 2);
});

test("the index names the kinds of each table, and only those", () => {
  for (const { kinds, table } of pieces) {
    const defined = Object.entries(table).flatMap(([name, { gvk = [] }]) => gvk.map((one) => [one, name]));
    expect(Object.fromEntries(defined)).toEqual(kinds);
  }
});

test("every definition that is referred to is there, and no field has prose", () => {
  const names = new Set(pieces.flatMap(({ table }) => Object.keys(table)));
  const known = [
    "t",
    "pb",
    "required",
    "default",
    "listType",
    "listMapKeys",
    "mapType",
    "patchStrategy",
    "patchMergeKey",
    "ptr",
    "emit",
  ];

  for (const { table } of pieces) {
    for (const { fields } of Object.values(table)) {
      for (const field of Object.values(fields)) {
        const reference = /#([\w.]+)/.exec(String(field["t"]))?.[1];
        if (reference !== undefined) expect(names).toContain(reference);
        expect(known).toEqual(expect.arrayContaining(Object.keys(field)));
      }
    }
  }
});
