import { declare, type Library, type Work } from "../functions.ts";
import { Pattern } from "../regex/match.ts";

/** `matches` of the standard, `find` and `findAll` of Kubernetes. */
export const REGEXES: Library = [
  declare("matches(string, string) bool", matches),
  declare("string -> matches(string) bool", matches),
  declare(
    "string -> find(string) string",
    (text: string, pattern: string, work: Work) => patternOf(pattern, work).find(text, work) ?? "",
  ),
  declare("string -> findAll(string) list(string)", (text: string, pattern: string, work: Work) =>
    patternOf(pattern, work).findAll(text, Infinity, work),
  ),
  declare("string -> findAll(string, int) list(string)", findSome),
];

function matches(text: string, pattern: string, work: Work): boolean {
  return patternOf(pattern, work).matches(text, work);
}

function findSome(text: string, pattern: string, limit: bigint, work: Work): string[] {
  return patternOf(pattern, work).findAll(text, limit < 0n ? Infinity : Number(limit), work);
}

/** Patterns are nearly always literals of a few policies; those that come from objects push each other out. */
const PATTERNS_MAX = 256;
const patterns = new Map<string, Pattern>();

function patternOf(source: string, work: Work): Pattern {
  const known = patterns.get(source);
  if (known !== undefined) return known;
  work.charge(source.length);
  const made = new Pattern(source);
  if (patterns.size >= PATTERNS_MAX) patterns.clear();
  patterns.set(source, made);
  return made;
}
