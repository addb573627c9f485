import { unreachable } from "../../base/assert.ts";
import { evaluationError } from "../errors.ts";
import type { Work } from "../functions.ts";
import { parseRegex } from "./parse.ts";
import type { Assertion, CharTest, Regex } from "./syntax.ts";

/**
 * Regular expressions in linear time. JavaScript's own try one way after another: `(a+)+$` on 28 letters takes
 * seconds, and whoever may write a policy, or an object that one looks at, could stop the server. Here all ways are
 * followed at once, a character at a time (Pike's machine), so that the work is at most the length of the text times
 * the size of the pattern, and it counts. What cannot be done so, back references and look-around, RE2 does not have
 * either.
 */
export class Pattern {
  readonly #code: readonly Instruction[];

  /** Throws a CelError for what is not of RE2's syntax, or too large. */
  constructor(pattern: string) {
    this.#code = assemble(parseRegex(pattern));
  }

  matches(text: string, work: Work): boolean {
    return this.#run(toCodes(text), 0, work, true) !== undefined;
  }

  find(text: string, work: Work): string | undefined {
    const codes = toCodes(text);
    const found = this.#run(codes, 0, work, false);
    return found === undefined ? undefined : toText(codes, found);
  }

  /** Those that do not overlap, from left to right; none of no length right after another. */
  findAll(text: string, limit: number, work: Work): string[] {
    const codes = toCodes(text);
    const found: string[] = [];
    let [from, last] = [0, -1];
    while (found.length < limit && from <= codes.length) {
      const span = this.#run(codes, from, work, false);
      if (span === undefined) break;
      if (span.end > span.start || span.start !== last) found.push(toText(codes, span));
      last = span.end;
      from = span.end > span.start ? span.end : span.end + 1;
    }
    return found;
  }

  #run(codes: readonly number[], from: number, work: Work, isAnyEnough: boolean): Span | undefined {
    let threads: Thread[] = [];
    let found: Span | undefined;
    for (let at = from; at <= codes.length; at++) {
      // Whoever began further left comes first; once somebody has matched, nobody begins any more.
      const next = new ThreadList(this.#code, codes, at);
      for (const thread of threads) next.add(thread);
      if (found === undefined) next.add({ pc: 0, start: at });
      work.charge(1 + (next.visits >> 3));
      threads = [];
      for (const { pc, start } of next.threads) {
        const instruction = this.#code[pc];
        if (instruction?.kind === "match") {
          found = { start, end: at };
          if (isAnyEnough) return found;
          break;
        }
        const code = codes[at];
        if (instruction?.kind === "char" && code !== undefined && instruction.matches(code)) {
          threads.push({ pc: pc + 1, start });
        }
      }
      if (threads.length === 0 && found !== undefined) break;
    }
    return found;
  }
}

interface Span {
  readonly start: number;
  readonly end: number;
}

interface Thread {
  readonly pc: number;
  readonly start: number;
}

type Instruction =
  | { readonly kind: "char"; readonly matches: CharTest }
  | { readonly kind: "assert"; readonly holds: Assertion }
  /** The first is preferred. */
  | { readonly kind: "split"; readonly to: readonly number[] }
  | { readonly kind: "match" };

/** Threads at one place of the text, in order of preference, no two at the same instruction. */
class ThreadList {
  readonly threads: Thread[] = [];
  visits = 0;
  readonly #code: readonly Instruction[];
  readonly #seen = new Set<number>();
  readonly #before: number | undefined;
  readonly #after: number | undefined;

  constructor(code: readonly Instruction[], codes: readonly number[], at: number) {
    this.#code = code;
    this.#before = codes[at - 1];
    this.#after = codes[at];
  }

  add({ pc, start }: Thread): void {
    // A stack of its own: patterns may have thousands of choices in a row.
    const waiting = [pc];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (this.#seen.has(next)) continue;
      this.#seen.add(next);
      this.visits++;
      const instruction = this.#code[next];
      if (instruction?.kind === "split") {
        for (const target of instruction.to.toReversed()) waiting.push(target);
      } else if (instruction?.kind === "assert") {
        if (instruction.holds(this.#before, this.#after)) waiting.push(next + 1);
      } else this.threads.push({ pc: next, start });
    }
  }
}

/** Counts are written out: `(a{100}){100}` would be 10,000 of them. */
const INSTRUCTIONS_MAX = 10_000;

function assemble(regex: Regex): Instruction[] {
  const code: Instruction[] = [];
  emit(code, regex);
  code.push({ kind: "match" });
  return code;
}

function emit(code: Instruction[], regex: Regex): void {
  if (code.length > INSTRUCTIONS_MAX) throw evaluationError("error parsing regexp: expression too large");
  switch (regex.kind) {
    case "empty":
      return;
    case "char":
    case "assert":
      code.push(regex);
      return;
    case "sequence":
      for (const part of regex.parts) emit(code, part);
      return;
    case "either":
      emitEither(code, regex.options);
      return;
    case "repeat":
      emitRepeat(code, regex);
      return;
    default:
      unreachable(regex);
  }
}

function emitEither(code: Instruction[], options: readonly Regex[]): void {
  const start = code.length;
  code.push({ kind: "match" });
  const begins: number[] = [];
  const ends: number[] = [];
  for (const option of options) {
    begins.push(code.length);
    emit(code, option);
    ends.push(code.length);
    code.push({ kind: "match" });
  }
  code[start] = { kind: "split", to: begins };
  for (const end of ends) code[end] = { kind: "split", to: [code.length] };
}

function emitRepeat(code: Instruction[], { part, min, max, isGreedy }: Regex & { kind: "repeat" }): void {
  const choose = (go: number, leave: number): Instruction => ({
    kind: "split",
    to: isGreedy ? [go, leave] : [leave, go],
  });
  for (let count = 0; count < min; count++) emit(code, part);
  if (max === Infinity) {
    const start = code.length;
    code.push({ kind: "match" });
    emit(code, part);
    code.push({ kind: "split", to: [start] });
    code[start] = choose(start + 1, code.length);
    return;
  }
  const starts: number[] = [];
  for (let count = min; count < max; count++) {
    starts.push(code.length);
    code.push({ kind: "match" });
    emit(code, part);
  }
  for (const start of starts) code[start] = choose(start + 1, code.length);
}

function toCodes(text: string): number[] {
  return Array.from(text, (char) => char.codePointAt(0) ?? 0);
}

function toText(codes: readonly number[], { start, end }: Span): string {
  return codes
    .slice(start, end)
    .map((code) => String.fromCodePoint(code))
    .join("");
}
