import { InvalidArgumentError, Option } from "commander";

/** The spellings of Go's flag packages, so that a command line written for upstream keeps its meaning. */
const SPELLINGS: Readonly<Record<string, boolean>> = {
  ...{ true: true, True: true, TRUE: true, t: true, T: true, 1: true },
  ...{ false: false, False: false, FALSE: false, f: false, F: false, 0: false },
};

/** `--name`, `--name=true` and `--name=false`, as Go has them. */
export function booleanOption(name: string, description: string, fallback: boolean): Option {
  return new Option(`--${name} [bool]`, description).default(fallback).argParser((text) => {
    const value = Object.hasOwn(SPELLINGS, text) ? SPELLINGS[text] : undefined;
    if (value === undefined) {
      throw new InvalidArgumentError(`Give --${name}, --${name}=true or --${name}=false.`);
    }
    return value;
  });
}
