import type { Command } from "commander";
import { SUBJECT_KINDS } from "../../views/subjects.ts";
import { suggest, type Completion, type Elsewhere } from "./suggest.ts";

/**
 * Lines for the scripts of scripts.ts: a word that fits with its description behind a tab, or an instruction. `:files`
 * and `:directories` leave the answer to the shell; `:nospace` says that the word goes on.
 */
export async function complete(program: Command, words: readonly string[]): Promise<readonly string[]> {
  const completion = suggest(program, words);
  const { choices, prefix, elsewhere } = completion;
  const lines = choices.map(({ value, description }) => toLine(`${prefix}${value}`, description));
  return elsewhere === undefined ? lines : [...lines, ...(await askElsewhere(elsewhere, completion))];
}

function toLine(value: string, description: string): string {
  return description === "" ? value : `${value}\t${description}`;
}

async function askElsewhere(elsewhere: Elsewhere, completion: Completion): Promise<readonly string[]> {
  switch (elsewhere) {
    case "files":
    case "directories":
      return [`:${elsewhere}`];
    case "namespaces": {
      const { namespaceNames } = await import("./objects.ts");
      return beginningWith(completion, await namespaceNames(whereOf(completion)));
    }
    case "objects":
      return objectLines(completion);
  }
}

/** The kind first; names are asked for once it stands there, of that kind alone. */
async function objectLines(completion: Completion): Promise<readonly string[]> {
  const { objectNames } = await import("./objects.ts");
  const kind = SUBJECT_KINDS.find((candidate) => completion.typed.startsWith(`${candidate}/`));
  if (kind !== undefined) return beginningWith(completion, await objectNames(kind, whereOf(completion)));
  const kinds = SUBJECT_KINDS.map((candidate) => `${candidate}/`);
  return [...beginningWith(completion, kinds), ":nospace"];
}

function beginningWith({ prefix, typed }: Completion, values: readonly string[]): readonly string[] {
  return values.filter((value) => value.startsWith(typed)).map((value) => `${prefix}${value}`);
}

function whereOf({ given }: Completion): {
  readonly kubeconfig: string | undefined;
  readonly namespace: string | undefined;
} {
  return { kubeconfig: given["kubeconfig"], namespace: given["namespace"] };
}
