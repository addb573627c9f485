// The trace hashes of some seeds are what test/fixtures/sim-hashes.json says, on every Node.js that MOORING_NODES names. A change
// of the programs or of the simulator changes them: MOORING_UPDATE=1 writes those of this Node.js.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { MOORING } from "../e2e/mooring.ts";

const FILE = resolve(import.meta.dirname, "../fixtures/sim-hashes.json");
const ARGS = ["sim", "--seeds", "5", "--first-seed", "1", "--keep-going", "-o", "json"];

type Hashes = Readonly<Record<string, string>>;

const others = (process.env["MOORING_NODES"] ?? "").split(delimiter).filter((path) => path !== "");
if (others.length === 0)
  process.stdout.write("left out: trace hashes on other Node.js versions: MOORING_NODES names none\n");

function hashesOn(node: string): Hashes {
  const { stdout, stderr } = spawnSync(node, [MOORING, ...ARGS], { encoding: "utf8", maxBuffer: 64 << 20 });
  if (stdout === "") throw new Error(stderr);
  return (JSON.parse(stdout) as { hashes: Hashes }).hashes;
}

describe("trace hashes", () => {
  for (const node of [process.execPath, ...others]) {
    const version = spawnSync(node, ["--version"], { encoding: "utf8" }).stdout.trim();
    test(`on Node.js ${version}`, () => {
      const hashes = hashesOn(node);
      if (process.env["MOORING_UPDATE"] === "1" && node === process.execPath)
        writeFileSync(FILE, `${JSON.stringify(hashes, null, 2)}\n`);

      expect(hashes, "after a change that is meant: MOORING_UPDATE=1").toEqual(
        JSON.parse(readFileSync(FILE, "utf8")),
      );
    });
  }
});
