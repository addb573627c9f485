/** A regular expression as RE2 writes them, read. */
export type Regex =
  | { readonly kind: "empty" }
  | { readonly kind: "char"; readonly matches: CharTest }
  | { readonly kind: "sequence"; readonly parts: readonly Regex[] }
  /** In order of preference. */
  | { readonly kind: "either"; readonly options: readonly Regex[] }
  | {
      readonly kind: "repeat";
      readonly part: Regex;
      readonly min: number;
      readonly max: number;
      readonly isGreedy: boolean;
    }
  | { readonly kind: "assert"; readonly holds: Assertion };

export type CharTest = (codePoint: number) => boolean;

/** Of the characters before and after a place; undefined where the text begins or ends. */
export type Assertion = (before: number | undefined, after: number | undefined) => boolean;

export type Range = readonly [number, number];

export function inRanges(ranges: readonly Range[]): CharTest {
  return (code) => ranges.some(([low, high]) => code >= low && code <= high);
}

/** With the flag `i`: a letter matches its other case. */
export function foldCase(matches: CharTest): CharTest {
  return (code) => {
    if (matches(code)) return true;
    const char = String.fromCodePoint(code);
    return [char.toLowerCase(), char.toUpperCase()].some(
      (other) => other !== char && other.length === char.length && matches(other.codePointAt(0) ?? 0),
    );
  };
}
