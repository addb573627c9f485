// `mooring sim` as a person runs it. One seed gives one run: here in this process, there in a child and in its threads.
import { describe, expect, test } from "vitest";
import { runSeed } from "../../src/sim/run.ts";
import { mooring } from "../e2e/mooring.ts";

const SEEDS = [1, 2, 3, 4, 5];
const MINUTES = ["--minutes", "1"];

interface SearchJson {
  readonly hashes: Readonly<Record<string, string>>;
  readonly failures: readonly unknown[];
  readonly coverage: {
    readonly acts: Readonly<Record<string, number>>;
    readonly blocksNeverSeen: readonly object[];
  };
}

function searched(...args: string[]): SearchJson {
  const { code, stdout, stderr } = mooring("sim", ...args, "-o", "json");
  expect([code, stderr]).toEqual([0, expect.stringContaining("--first-seed")]);
  return JSON.parse(stdout) as SearchJson;
}

describe("a seed is one run", () => {
  test("twice in one process, in threads and in a child process", async () => {
    const here: string[] = [];
    const again: string[] = [];
    for (const seed of SEEDS) here.push((await runSeed(seed, { durationMs: 60_000 })).hash);
    for (const seed of SEEDS) again.push((await runSeed(seed, { durationMs: 60_000 })).hash);

    const threads = searched("--seeds", "5", "--first-seed", "1", "--jobs", "2", ...MINUTES);
    const child = SEEDS.map((seed) => {
      const { stdout } = mooring("sim", "--seed", String(seed), ...MINUTES);
      return /^trace ([0-9a-f]{16}),/m.exec(stdout)?.[1];
    });

    expect(again).toEqual(here);
    expect(SEEDS.map((seed) => threads.hashes[seed])).toEqual(here);
    expect(child).toEqual(here);
    expect(threads.failures).toEqual([]);
    expect(threads.coverage.acts["add-app"]).toBeGreaterThan(10);
    expect(threads.coverage.blocksNeverSeen.length).toBeGreaterThan(0);
  });
});

test("a seed is told line by line, the seed first and the verdict last", () => {
  const { code, stdout } = mooring("sim", "--seed", "1", ...MINUTES);
  const lines = stdout.trimEnd().split("\n");

  expect(code).toBe(0);
  expect(lines[0]).toBe("seed 1");
  expect(lines.at(-2)).toBe("ok: seed 1");
  expect(stdout).toMatch(/^ +\d+\.\d{3} {2}controller +VolumeAttachment of d1 on node-\d is created$/m);
  expect(stdout).toMatch(/^ +\d+\.\d{3} {2}attacher +ControllerPublishVolume d1 on node-\d/m);
});

test("the life of a volume is drawn", () => {
  const text = mooring("sim", "--seed", "1", "--story", "d1", ...MINUTES);
  const svg = mooring("sim", "--seed", "1", "--story", "d1", "-o", "svg", ...MINUTES);

  expect(text.code).toBe(0);
  expect(text.stdout).toMatch(/NodeStageVolume/);
  expect(Math.max(...text.stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
  expect(svg.stdout).toMatch(/^<svg [^]*<\/svg>\n$/);
});

describe("misuse names the flag and what to give instead", () => {
  for (const [args, words] of [
    [[], /give --seed NUMBER .* or --seeds COUNT/],
    [["--seed", "-1"], /'--seed <number>' argument '-1' is invalid. Give a whole number, 0 or above/],
    [["--seeds", "0"], /'--seeds <count>' argument '0' is invalid/],
    [["--seed", "1", "--seeds", "2"], /exclude each other/],
    [["--seed", "1", "--faults", "kil"], /--faults: "kil" is no kind of act: give some of/],
    [["--seed", "1", "--only", "999"], /--only: step 999 is not in the plan: it has 0 to \d+/],
    [["--seed", "1", "--only", "one"], /--only: "one" is no step/],
    [["--seeds", "2", "--only", "1"], /--only is about one run: give --seed/],
    [["--seed", "1", "--for", "3m"], /--for is about a search: give --seeds/],
    [["--seeds", "2", "--for", "3"], /'--for <duration>' argument '3' is invalid/],
    [["--seed", "1", "-o", "svg"], /give --story VOLUME/],
    [
      ["--seed", "1", "--story", "d999", ...MINUTES],
      /--story: there is no volume d999 in seed 1: give one of d1/,
    ],
  ] as const)
    test(`mooring sim ${args.join(" ")}`, () => {
      const { code, stderr } = mooring("sim", ...args);

      expect([code, stderr]).toEqual([2, expect.stringMatching(words)]);
    });
});
