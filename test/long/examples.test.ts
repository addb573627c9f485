// Every story of examples/ told by the real binary, and told again after it was killed in the middle.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { Running, scratch } from "../e2e/mooring.ts";
import { letGoOf, loopDevicesBelow, mountsBelow, PROJECT } from "../e2e/up-world.ts";

const FOLDER = join(PROJECT, "examples");
const EXAMPLES = readdirSync(FOLDER).filter((name) => name.endsWith(".yaml"));

const place = scratch();
const started: Running[] = [];
afterEach(async () => {
  for (const process of started.splice(0)) {
    process.kill("SIGKILL");
    await process.exit();
  }
  letGoOf(place.path);
});
afterAll(place.remove);

/** The command in the first lines of an example, as a person would copy it. */
function commandOf(example: string): readonly string[] {
  const comment = readFileSync(join(FOLDER, example), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("#"))
    .map((line) => line.slice(1).trim())
    .join(" ")
    .replaceAll("\\ ", "");
  const [, args = ""] = /mooring (up --once .*)$/.exec(comment) ?? [];
  return args.split(/ +/).map((arg) => (arg.startsWith("examples/") ? join(PROJECT, arg) : arg));
}

function tell(example: string, dataDir: string): Running {
  const process = new Running(...commandOf(example), "--data-dir", dataDir, "--listen", "127.0.0.1:0");
  started.push(process);
  return process;
}

async function expectTold(process: Running, dataDir: string): Promise<void> {
  const { code } = await process.exit();
  expect([code, process.stderr, process.stdout]).toEqual([0, "", expect.stringMatching(/stopped\n$/)]);
  expect([mountsBelow(dataDir), loopDevicesBelow(dataDir)]).toEqual([[], []]);
}

describe("examples", () => {
  test("there are ten, and each says how it is run", () => {
    expect(EXAMPLES).toHaveLength(10);
    for (const example of EXAMPLES)
      expect(commandOf(example).slice(0, 3)).toEqual(["up", "--once", join(FOLDER, example)]);
  });

  for (const example of EXAMPLES) {
    test(`${example} runs to its end and leaves nothing mounted`, async () => {
      const dataDir = join(place.path, `${example}-once`);

      await expectTold(tell(example, dataDir), dataDir);
    });

    test(`${example} killed with -9 in the middle: the next start takes over and tells it to the end`, async () => {
      const dataDir = join(place.path, `${example}-killed`);
      const first = tell(example, dataDir);
      // Its first object is there, its last is not.
      await first.says(/^\w+\/[\w-]+ +\d+ ms /m);
      first.kill("SIGKILL");
      await first.exit();

      await expectTold(tell(example, dataDir), dataDir);
    });
  }
});
