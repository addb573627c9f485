import { describe, expect, test } from "vitest";
import type { Command } from "commander";
import { LIST_NAMES } from "../output/list-names.ts";
import { createProgram } from "../program.ts";
import { suggest } from "./suggest.ts";

const program = createProgram();

/** `get vo|` as words: the last one is being typed. */
const complete = (line: string) => suggest(program, line.split(" "));
const values = (line: string) => complete(line).choices.map(({ value }) => value);

describe("a word is completed by what the command line says of itself:", () => {
  for (const [line, expected] of [
    ["ge", ["get"]],
    ["apiserver snapshot ", ["save", "status", "restore"]],
    ["get ", [...LIST_NAMES]],
    ["get vo", ["volumes"]],
    ["get volumes ", []], // it takes one
    ["get volumes -o ", ["table", "wide", "json", "yaml"]],
    ["get volumes --output w", ["wide"]],
    ["get --output json at", ["attachments"]], // the value of a flag is no operand
    ["get --output=json at", ["attachments"]],
    ["get volumes --output=y", ["yaml"]],
    ["get volumes --all", ["--all-namespaces"]],
    ["get volumes --all-namespaces --all", []], // once is enough
    ["attacher --csi-address a --csi-ad", ["--csi-address"]], // unless it may be repeated
    ["attacher -logging-format ", ["json", "text"]], // Go's spelling
    ["controller --leader-elect=", ["true", "false"]],
    ["controller --leader-elect f", ["false"]],
    ["completion ", ["bash", "zsh", "fish"]],
    ["__comp", []], // nobody is meant to type it
    ["frobnicate ", []],
    ["get -- -", []], // nothing is a flag any more
  ] as const) {
    test(`mooring ${line}|`, () => {
      expect(values(line)).toEqual(expected);
    });
  }
});

describe("what only the disk or a cluster knows is asked there:", () => {
  for (const [line, expected] of [
    ["get volumes --kubeconfig ", { elsewhere: "files", prefix: "", typed: "" }],
    ["get volumes --kubeconfig=./a", { elsewhere: "files", prefix: "--kubeconfig=", typed: "./a" }],
    ["up --data-dir ", { elsewhere: "directories" }],
    ["apiserver snapshot save ", { elsewhere: "files" }],
    ["why po", { elsewhere: "objects", typed: "po" }],
    [
      "why -n shop --kubeconfig=f pod/",
      { elsewhere: "objects", given: { namespace: "shop", kubeconfig: "f" } },
    ],
    ["why pod/web -n s", { elsewhere: "namespaces", typed: "s" }],
    ["why pod/web ", { elsewhere: undefined }],
  ] as const) {
    test(`mooring ${line}|`, () => {
      expect(complete(line)).toMatchObject(expected);
    });
  }
});

test("every command, every flag that help shows and every choice is offered", () => {
  const missing: string[] = [];
  const expectOffered = (line: string, value: string) => {
    if (!values(`${line}${value}`).includes(value)) missing.push(`${line}${value}`);
  };
  const visit = (command: Command, line: string): void => {
    for (const option of command.options) {
      expectOffered(line, option.long ?? "");
      for (const choice of option.argChoices ?? []) expectOffered(`${line}${option.long} `, choice);
    }
    for (const child of command.commands.filter((candidate) => !candidate.name().startsWith("__"))) {
      expectOffered(line, child.name());
      visit(child, `${line}${child.name()} `);
    }
  };

  visit(program, "");

  expect(missing).toEqual([]);
});
