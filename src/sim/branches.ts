/** Which parts of the plan files ran: V8's blocks, by where they are in the source. */

/** A place of the source that did not run. */
export interface Place {
  /** Which one of the file's places. */
  readonly at: number;
  /** 1-based, as editors count. */
  readonly line: number;
  readonly column: number;
  /** The whole line. */
  readonly text: string;
}

export interface FileBranches {
  /** Lines with code. */
  readonly lines: number;
  /** In order. */
  readonly unrun: readonly Place[];
}

/** By path below the root: `src/node/plan.ts`. */
export type Branches = Readonly<Record<string, FileBranches>>;

/** What did not run in either. Both measured the same files. */
export function addBranches(one: Branches, other: Branches): Branches {
  return Object.fromEntries(
    Object.entries(one).map(([path, { lines, unrun }]) => {
      const unrunThere = new Set(other[path]?.unrun.map(({ at }) => at));
      return [path, { lines, unrun: unrun.filter(({ at }) => unrunThere.has(at)) }];
    }),
  );
}

/** The first place of each block that did not run, one a line. */
export function blocksOf({ unrun }: FileBranches): readonly Place[] {
  const first = unrun.filter(({ at }, index) => unrun[index - 1]?.at !== at - 1);
  return first.filter(({ line }, index) => first[index - 1]?.line !== line);
}

/** Lines of which all or something did not run. */
export function unrunLinesOf({ unrun }: FileBranches): number {
  return new Set(unrun.map(({ line }) => line)).size;
}

/** One range of V8's block coverage: offsets into the generated text. */
export interface CoverageRange {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/** Where a place of the generated text comes from. */
export interface Mapping {
  readonly offset: number;
  readonly line: number;
  readonly column: number;
}

/** From functions' ranges, outer ones first, to what of the source did not run. */
export function toFileBranches(
  functions: readonly { readonly ranges: readonly CoverageRange[] }[],
  { mappings, source, length }: { mappings: readonly Mapping[]; source: string; length: number },
): FileBranches {
  const isRun = new Uint8Array(length).fill(1);
  const ranges = functions.flatMap((called) => called.ranges);
  // A range inside another says the last word on its part.
  for (const { startOffset, endOffset, count } of [...ranges].sort(
    (a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset,
  ))
    isRun.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  const text = source.split("\n");
  // Behind the end of a line there is nothing to run: V8 counts the way from a return to the next brace.
  const places = mappings.filter(
    ({ line, column }) => (text[line - 1] ?? "").slice(column - 1).trim() !== "",
  );
  const unrun = places.flatMap(({ offset, line, column }, at) =>
    isRun[offset] === 1 ? [] : [{ at, line, column, text: (text[line - 1] ?? "").trim() }],
  );
  return { lines: new Set(mappings.map(({ line }) => line)).size, unrun };
}

const DIGITS = new Map(
  Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", (digit, at) => [digit, at]),
);

/** The `mappings` of a source map (https://tc39.es/ecma426/) of one source, as offsets into the generated text. */
export function parseMappings(mappings: string, generated: string): readonly Mapping[] {
  const found: Mapping[] = [];
  let lineOffset = 0;
  let line = 0;
  let column = 0;
  const generatedLines = generated.split("\n");
  for (const [at, segments] of mappings.split(";").entries()) {
    let generatedColumn = 0;
    for (const segment of segments === "" ? [] : segments.split(",")) {
      const [columns = 0, , lines, sourceColumns = 0] = decodeNumbers(segment);
      generatedColumn += columns;
      if (lines === undefined) continue;
      line += lines;
      column += sourceColumns;
      found.push({ offset: lineOffset + generatedColumn, line: line + 1, column: column + 1 });
    }
    lineOffset += (generatedLines[at]?.length ?? 0) + 1;
  }
  return found;
}

/** Base64 VLQ: five bits a digit, the lowest first; the lowest bit of a number is its sign. */
function decodeNumbers(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (const character of segment) {
    const digit = DIGITS.get(character) ?? 0;
    value += (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    numbers.push((value & 1) === 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}
