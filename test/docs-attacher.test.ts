import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { WAITING_REASONS } from "../src/attacher/waiting.ts";
import { CSI_CODES, CsiError, type CsiCode } from "../src/csi/errors.ts";

const read = (page: string) => readFileSync(resolve(import.meta.dirname, "../docs/reference", page), "utf8");

test("every reason of an attachment to wait is described once, and no other", () => {
  const described = [...read("waiting-attacher.md").matchAll(/^\| `([^`]+)`/gm)].map(([, reason]) => reason);

  expect(described.sort()).toEqual([...WAITING_REASONS].sort());
});

test("every code of CSI is described with its number and class, and no other", () => {
  const rows = [...read("errors.md").matchAll(/^\| (\d+) \| `([A-Z_]+)` \| (\w+) \|/gm)];

  expect(rows.map(([, number, code, kind]) => [code, Number(number), kind])).toEqual(
    Object.entries(CSI_CODES).map(([code, number]) => [
      code,
      number,
      new CsiError(code as CsiCode, "").class,
    ]),
  );
});
