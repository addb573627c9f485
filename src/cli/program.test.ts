import { CommanderError, type Command } from "commander";
import { describe, expect, test } from "vitest";
import { KubeError } from "../kube/errors.ts";
import { ProcessError } from "../processes/errors.ts";
import { exitCodeOf } from "./exit.ts";
import { createProgram } from "./program.ts";

/** What holds for every command, so that a new one cannot be forgotten. */

interface Outcome {
  readonly code: number;
  readonly printed: string;
}

/** The whole command line, except that nothing is carried out. */
async function parse(words: readonly string[]): Promise<Outcome> {
  const program = createProgram();
  let printed = "";
  const write = (text: string) => (printed += text);
  for (const { command, path } of all(program)) {
    command.configureOutput({ writeOut: write, writeErr: write });
    // One that only leads to others carries nothing out, and has no flags of its own.
    const leads = command.commands.length > 0 && (command.options.length === 0 || path.length === 0);
    if (!leads) command.action(() => undefined);
  }
  try {
    await program.parseAsync([...words], { from: "user" });
    return { code: 0, printed };
  } catch (error) {
    return { code: exitCodeOf(error, (line) => write(`${line}\n`)), printed };
  }
}

/** Every command with the words that lead to it, the program itself first; what scripts call is left out. */
function all(
  command: Command,
  path: readonly string[] = [],
): { command: Command; path: readonly string[] }[] {
  const below = command.commands.filter((child) => !child.name().startsWith("__"));
  return [{ command, path }, ...below.flatMap((child) => all(child, [...path, child.name()]))];
}

/** `mooring get volumes -o wide   what it is for`: the words of each example, without what a shell does with them. */
function examplesIn(help: string): string[][] {
  const [, section = ""] = help.split("\nExamples:\n");
  return section
    .split("\n")
    .filter((line) => line.startsWith("  mooring"))
    .map((line) => line.trim().split(/ {2,}| [>|&] /)[0] ?? "")
    .map((line) => [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? ""))
    .map((words) => words.slice(1));
}

for (const { path } of all(createProgram())) {
  const name = ["mooring", ...path].join(" ");

  describe(name, () => {
    test("--help is success and has examples, of which one at least is its own and each is understood", async () => {
      const { code, printed } = await parse([...path, "--help"]);
      const examples = examplesIn(printed);

      expect(code).toBe(0);
      expect(examples.filter((words) => path.every((word, index) => words[index] === word))).not.toEqual([]);
      for (const words of examples) expect([words, await parse(words)]).toMatchObject([words, { code: 0 }]);
    });

    test("a flag it does not have, or lacks, is misuse, and the complaint names it and says where help is", async () => {
      const { code, printed } = await parse([...path, "--frobnicate"]);

      expect(code).toBe(2);
      expect(printed).toMatch(/(unknown option '--frobnicate'|required option '--\w)[^]*run with --help/);
    });
  });
}

describe("what was mistyped is answered with the nearest", () => {
  for (const [words, nearest] of [
    [["gett"], "get"],
    [["controler"], "controller"],
    [["apiserver", "snapshot", "restor"], "restore"],
    [["up", "--lissten", "x"], "--listen"],
    [["get", "volumes", "--watchh"], "--watch"],
  ] as const) {
    test(`mooring ${words.join(" ")}`, async () => {
      expect(await parse(words)).toMatchObject({
        code: 2,
        printed: expect.stringContaining(`(Did you mean ${nearest}?)`),
      });
    });
  }
});

describe("exit codes", () => {
  const missing = Object.assign(new Error("ENOENT: no such file or directory, open '/x'"), {
    code: "ENOENT",
    syscall: "open",
  });

  for (const [what, error, code, printed] of [
    ["help", new CommanderError(0, "commander.help", ""), 0, []],
    ["misuse, of which commander has told", new CommanderError(1, "commander.unknownOption", ""), 2, []],
    ["a start that cannot go on", new ProcessError("BadAddress", "taken"), 1, ["mooring: taken"]],
    ["a server's word", new KubeError("Forbidden", "may not"), 1, ["mooring: Forbidden: may not"]],
    ["a file, without a stack", missing, 1, ["mooring: ENOENT: no such file or directory, open '/x'"]],
  ] as const) {
    test(`${what}: ${code}`, () => {
      const lines: string[] = [];

      expect(exitCodeOf(error, (line) => lines.push(line))).toBe(code);
      expect(lines).toEqual(printed);
    });
  }

  test("a fault of ours is 1, and a report of it has the place", () => {
    const lines: string[] = [];

    expect(exitCodeOf(new TypeError("x is not a function"), (line) => lines.push(line))).toBe(1);
    expect(lines[0]).toMatch(/^mooring: TypeError: x is not a function\n +at /);
  });
});
