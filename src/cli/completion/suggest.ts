import { Help, type Argument, type Command, type Option } from "commander";

/** A word that fits, and what a shell may show beside it. */
export interface Suggestion {
  readonly value: string;
  readonly description: string;
}

/** What a cluster or the disk knows and the command line does not. */
export type Elsewhere = "files" | "directories" | "namespaces" | "objects";

export interface Completion {
  readonly choices: readonly Suggestion[];
  readonly elsewhere: Elsewhere | undefined;
  /** What comes before the part that is completed, in the same word: `--output=`. */
  readonly prefix: string;
  /** The part of the word that was typed, without the prefix. */
  readonly typed: string;
  /** Values given so far, by flag; a cluster is found by them. */
  readonly given: Readonly<Record<string, string>>;
}

/**
 * What may stand in place of the last word, told by the command line itself: no list is kept for it. `words` come after
 * the program's name, and the last one is what was typed of the word in question, perhaps nothing.
 */
export function suggest(program: Command, words: readonly string[]): Completion {
  const { command, awaited, operands, given, ended } = walk(program, words.slice(0, -1));
  const current = words.at(-1) ?? "";
  const [, flag = "", typed = ""] = /^(--[^=]+)=(.*)$/s.exec(current) ?? [];
  const named = flag === "" ? undefined : flagNamed(command, flag);
  const answer = (prefix: string, part: string, { choices, elsewhere }: Fitting): Completion => ({
    choices: choices.filter(({ value }) => value.startsWith(part)),
    elsewhere,
    prefix,
    typed: part,
    given,
  });
  if (awaited?.required) return answer("", current, valuesOf(awaited));
  if (named !== undefined && !ended) return answer(`${flag}=`, typed, valuesOf(named));
  if (current.startsWith("-") && !ended) return answer("", current, flagsOf(command, given));
  const fitting = operandsOf(command, operands);
  if (awaited === undefined) return answer("", current, fitting);
  const values = valuesOf(awaited);
  return answer("", current, { ...fitting, choices: [...values.choices, ...fitting.choices] });
}

interface Fitting {
  readonly choices: readonly Suggestion[];
  readonly elsewhere: Elsewhere | undefined;
}

const NOTHING: Fitting = { choices: [], elsewhere: undefined };

interface Walked {
  readonly command: Command;
  /** A flag at the end that takes the next word; surely if its value is required. */
  readonly awaited: Option | undefined;
  /** Words that are neither flags, nor their values, nor commands. */
  readonly operands: number;
  readonly given: Readonly<Record<string, string>>;
  /** After `--` nothing is a flag. */
  readonly ended: boolean;
}

/** Follows the words as the parser would, without judging them: half a command line is always wrong somehow. */
function walk(program: Command, words: readonly string[]): Walked {
  let at: Walked = { command: program, awaited: undefined, operands: 0, given: {}, ended: false };
  for (const word of words) at = step(at, word);
  return at;
}

function step(at: Walked, word: string): Walked {
  const { command, awaited, operands, given } = at;
  const isFlag = word.startsWith("-") && word !== "-" && !at.ended;
  if (awaited !== undefined && (awaited.required || !isFlag)) {
    return { ...at, awaited: undefined, given: { ...given, [awaited.attributeName()]: word } };
  }
  if (word === "--") return { ...at, awaited: undefined, ended: true };
  if (isFlag) return withFlag(at, word);
  const child = command.commands.find((candidate) => candidate.name() === word);
  if (child !== undefined && operands === 0 && !at.ended) return { ...at, command: child };
  return { ...at, awaited: undefined, operands: operands + 1 };
}

function withFlag(at: Walked, word: string): Walked {
  const equals = word.indexOf("=");
  const option = flagNamed(at.command, equals < 0 ? word : word.slice(0, equals));
  if (option === undefined) return { ...at, awaited: undefined };
  const value = equals < 0 ? "" : word.slice(equals + 1);
  const given = { ...at.given, [option.attributeName()]: value };
  const takes = equals < 0 && (option.required || option.optional);
  return { ...at, given, awaited: takes ? option : undefined };
}

/** `-flag` is `--flag` to the commands that take Go's spelling; to others it is nothing. */
function flagNamed(command: Command, name: string): Option | undefined {
  return command.options.find(({ short, long }) => name === short || name === long || `-${name}` === long);
}

const HELP = new Help();

/** Flags that were not given yet, and those that may be given again. */
function flagsOf(command: Command, given: Readonly<Record<string, string>>): Fitting {
  const open = HELP.visibleOptions(command).filter(
    (option) => !(option.attributeName() in given) || Array.isArray(option.defaultValue),
  );
  return {
    choices: open.map(({ long, short, description }) => ({ value: long ?? short ?? "", description })),
    elsewhere: undefined,
  };
}

/** By the placeholder that help shows for a value: `--kubeconfig <file>`. */
const PLACEHOLDERS: Readonly<Record<string, Elsewhere>> = {
  file: "files",
  socket: "files",
  dir: "directories",
  object: "objects",
};

function valuesOf({ argChoices, flags, long }: Option): Fitting {
  if (argChoices !== undefined) return { choices: plain(argChoices), elsewhere: undefined };
  const placeholder = /[<[](.*)[>\]]/.exec(flags)?.[1] ?? "";
  if (placeholder === "bool") return { choices: plain(["true", "false"]), elsewhere: undefined };
  if (long === "--namespace") return { choices: [], elsewhere: "namespaces" };
  return { choices: [], elsewhere: PLACEHOLDERS[placeholder] };
}

function operandsOf(command: Command, operands: number): Fitting {
  const argument: Argument | undefined = command.registeredArguments[operands];
  if (argument !== undefined) {
    return { choices: plain(argument.argChoices ?? []), elsewhere: PLACEHOLDERS[argument.name()] };
  }
  if (operands > 0) return NOTHING;
  const commands = HELP.visibleCommands(command);
  return {
    choices: commands.map((child) => ({ value: child.name(), description: child.description() })),
    elsewhere: undefined,
  };
}

function plain(values: readonly string[]): readonly Suggestion[] {
  return values.map((value) => ({ value, description: "" }));
}
