import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCluster } from "../../views/cluster.ts";
import { explain } from "../../views/explain.ts";
import { CROWD } from "../../views/crowd.testing.ts";
import { FAULTS } from "../../views/faults.testing.ts";
import { withLongNames } from "../../views/long-names.testing.ts";
import { NOW_MS } from "../../views/objects.testing.ts";
import { stuckIn } from "../../views/stuck.ts";
import { createCutter, createNameShortener } from "./cut.ts";
import { formatExplanation } from "./explanation.ts";
import { LIST_NAMES } from "./list-names.ts";
import { LISTS } from "./lists.ts";
import { formatList } from "./printer.ts";
import { formatStuck } from "./stuck.ts";
import { PLAIN } from "./style.ts";
import { widthOf } from "./width.ts";
import { wrap, wrapCommand } from "./wrap.ts";

/** Every answer, in a cluster with names as real ones have them. `MOORING_WRITE_GOLDEN=1` writes the files. */
const GOLDEN = resolve(import.meta.dirname, "../../../test/fixtures/columns-80");
const LONG_FAULTS = FAULTS.map(withLongNames);
const context = { kubeconfig: "/home/operator/clusters/payments-production.kubeconfig" };

/** A word of a command is not cut, and may have a line of its own that is longer. */
const isOneWord = (line: string) => /^ *\S+( \\)?$/.test(line) || /^ *'[^']*'( \\)?$/.test(line);
const longest = (text: string) =>
  Math.max(...text.split("\n").map((line) => (isOneWord(line) ? 0 : line.length)));

/** What a person sees at 80 columns; a few answers that have everything, and every list. */
const SHOWN = [
  "held-by-running-pod",
  "va-detach-error",
  "statefulset-pod-over-quota",
  "deployment-rollout-deadlock",
  "snapshot-deleting",
  "storageclass-healthy",
  "csidriver-attacher-silent",
  "healthy-pod",
];

function answer(name: string, width?: number): string {
  const { objects, subject } = LONG_FAULTS.find((fault) => fault.name === name) ?? fail(name);
  const told = explain(createCluster(objects, NOW_MS, context), subject) ?? fail(name);
  return formatExplanation(told, NOW_MS, PLAIN, width === undefined ? {} : { width });
}

function fail(name: string): never {
  throw new Error(`no answer for ${name}`);
}

const crowded = createCluster(withLongNames(CROWD).objects, NOW_MS, context);

const golden: Readonly<Record<string, () => string>> = {
  ...Object.fromEntries(SHOWN.map((name) => [`why-${name}`, () => answer(name, 80)])),
  ...Object.fromEntries(
    LIST_NAMES.map((name) => [
      `get-${name}`,
      () =>
        formatList({ name, list: LISTS[name], format: "table", namespace: undefined, width: 80 }, crowded)
          .stdout,
    ]),
  ),
  "why-everything": () => formatStuck(stuckIn(crowded), NOW_MS, PLAIN, { width: 80 }),
};

describe("at 80 columns", () => {
  for (const { name } of LONG_FAULTS) {
    test(`${name}: no line of the answer is longer than the terminal is wide`, () => {
      for (const width of [60, 80, 120]) expect(longest(answer(name, width))).toBeLessThanOrEqual(width);
      expect(answer(name)).not.toMatch(/[0-9a-f]…[0-9a-f]/);
    });
  }

  for (const [name, print] of Object.entries(golden)) {
    test(`${name} is printed as the golden file says`, () => {
      const file = join(GOLDEN, `${name}.txt`);
      if (process.env["MOORING_WRITE_GOLDEN"] === "1") {
        mkdirSync(GOLDEN, { recursive: true });
        writeFileSync(file, `${print()}\n`);
      }

      expect(longest(print())).toBeLessThanOrEqual(80);
      expect(`${print()}\n`).toBe(readFileSync(file, "utf8"));
    });
  }

  test("every golden file belongs to something that is printed", () => {
    expect(readdirSync(GOLDEN).sort()).toEqual(
      Object.keys(golden)
        .map((name) => `${name}.txt`)
        .sort(),
    );
  });

  test("what is wide is never cut, and shown in full", () => {
    const print = (format: "wide" | "table") =>
      formatList(
        { name: "attachments", list: LISTS.attachments, format, namespace: undefined, width: 80 },
        crowded,
      ).stdout;

    expect(print("table")).toContain("…");
    expect(print("wide")).not.toContain("…");
    expect(answer("held-by-running-pod")).toContain("pvc-0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b9f3e");
  });
});

describe("cutting", () => {
  const name = fc.string({
    unit: fc.constantFrom("a", "b", "c", "-", "0", "1"),
    minLength: 1,
    maxLength: 40,
  });

  test("names that differ look different, however alike they are, and none is longer than its place", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { maxLength: 200 }),
        fc.integer({ min: 8, max: 30 }),
        (names, width) => {
          const cutter = createCutter(width);
          const shown = names.map((item) => cutter.cut(item));

          expect(new Set(shown).size).toBe(names.length);
          expect(Math.max(0, ...shown.map((item) => item.length))).toBeLessThanOrEqual(width);
          expect(names.map((item) => cutter.cut(item))).toEqual(shown);
        },
      ),
    );
  });

  test("of names that differ only in the middle, the middle is shown", () => {
    const cutter = createCutter(16);
    const [a, b] = ["claim-of-tenant-1-in-production", "claim-of-tenant-2-in-production"].map((item) =>
      cutter.cut(item),
    );

    expect(a).not.toBe(b);
  });

  test("in sentences names that machines make are short, and what people wrote is not", () => {
    const short = createNameShortener();
    const pv = "pvc-0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b9f3e";

    expect(short(`${pv} and ${pv.replace("4e5f", "4e5a")} on a-node-with-a-very-long-name-of-its-own`)).toBe(
      "pvc-0a1b…9f3e and pvc-0a1b2c…2b9f3e on a-node-with-a-very-long-name-of-its-own",
    );
    expect(short(`csi-${"ab".repeat(32)}, ${pv}.`)).toBe("csi-abab…abab, pvc-0a1b…9f3e.");
  });
});

describe("wrapping", () => {
  const words = fc.array(
    fc.string({ unit: fc.constantFrom("a", "b", "c", "…"), minLength: 1, maxLength: 20 }),
    {
      minLength: 1,
      maxLength: 30,
    },
  );

  test("a sentence keeps its words, and no line is longer than it may be", () => {
    fc.assert(
      fc.property(words, fc.integer({ min: 30, max: 80 }), (list, width) => {
        const text = wrap(list.join(" "), { width, first: "Next:  ", rest: "       " });

        expect(longest(text)).toBeLessThanOrEqual(width);
        expect(text.slice(7).split(/\s+/)).toEqual(list);
      }),
    );
  });

  test("a command that was broken is the same command to a shell", () => {
    const command = `kubectl --namespace payments patch deployment web --patch '{"spec":  {"strategy": null}}' --field-manager x`;
    const text = wrapCommand(command, { width: 60, first: "Helps:     ", rest: "    " });

    expect(longest(text)).toBeLessThanOrEqual(60);
    expect(text.slice(11).replaceAll(/ \\\n +/g, " ")).toBe(command);
  });
});

for (const [what, output, env, expected] of [
  ["a terminal says how wide it is", { isTTY: true, columns: 132 }, { COLUMNS: "90" }, 132],
  ["a pipe has the columns that COLUMNS says", {}, { COLUMNS: "132" }, 132],
  ["or 80", {}, {}, 80],
  ["what is no number is not taken", {}, { COLUMNS: "wide" }, 80],
  ["a terminal without a size is 80 wide", { isTTY: true, columns: 0 }, {}, 80],
  ["below 60 nothing would be left", { isTTY: true, columns: 20 }, {}, 60],
] as const) {
  test(what, () => {
    expect(widthOf(output, env)).toBe(expected);
  });
}
