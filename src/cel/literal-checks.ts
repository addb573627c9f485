import { CelError } from "./errors.ts";
import { Pattern } from "./regex/match.ts";
import type { Call } from "./syntax.ts";
import { parseDuration, parseTimestamp } from "./time.ts";

/** What a text that stands in the expression itself must be good for; found out before anybody relies on it. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  matches: (text) => new Pattern(text),
  find: (text) => new Pattern(text),
  findAll: (text) => new Pattern(text),
  duration: parseDuration,
  timestamp: parseTimestamp,
};

/** Throws a CelError `Check` at a pattern, duration or timestamp that no evaluation could read. */
export function checkLiterals({ name, target, args }: Call): void {
  const read = READERS[name];
  const literal = target === undefined && name === "matches" ? args[1] : args[0];
  if (read === undefined || literal?.kind !== "literal" || typeof literal.value !== "string") return;
  try {
    read(literal.value);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    throw new CelError("Check", `invalid ${name} argument`, literal.at);
  }
}
