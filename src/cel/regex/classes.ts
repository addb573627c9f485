import { inRanges, type CharTest, type Range } from "./syntax.ts";

const DIGIT: readonly Range[] = [[0x30, 0x39]];
const UPPER: readonly Range[] = [[0x41, 0x5a]];
const LOWER: readonly Range[] = [[0x61, 0x7a]];
const WORD: readonly Range[] = [...DIGIT, ...UPPER, ...LOWER, [0x5f, 0x5f]];
const SPACE: readonly Range[] = [
  [0x09, 0x0a],
  [0x0c, 0x0d],
  [0x20, 0x20],
];

export const isWordChar = inRanges(WORD);

/** `\d` and the like; ASCII only, as RE2 has them. */
export function perlClass(letter: string): CharTest | undefined {
  const ranges = { d: DIGIT, s: SPACE, w: WORD }[letter.toLowerCase()];
  if (ranges === undefined) return undefined;
  const matches = inRanges(ranges);
  return letter === letter.toLowerCase() ? matches : (code) => !matches(code);
}

const POSIX: ReadonlyMap<string, readonly Range[]> = new Map([
  ["alnum", [...DIGIT, ...UPPER, ...LOWER]],
  ["alpha", [...UPPER, ...LOWER]],
  ["ascii", [[0, 0x7f]]],
  [
    "blank",
    [
      [0x09, 0x09],
      [0x20, 0x20],
    ],
  ],
  [
    "cntrl",
    [
      [0, 0x1f],
      [0x7f, 0x7f],
    ],
  ],
  ["digit", DIGIT],
  ["graph", [[0x21, 0x7e]]],
  ["lower", LOWER],
  ["print", [[0x20, 0x7e]]],
  [
    "punct",
    [
      [0x21, 0x2f],
      [0x3a, 0x40],
      [0x5b, 0x60],
      [0x7b, 0x7e],
    ],
  ],
  [
    "space",
    [
      [0x09, 0x0d],
      [0x20, 0x20],
    ],
  ],
  ["upper", UPPER],
  ["word", WORD],
  ["xdigit", [...DIGIT, [0x41, 0x46], [0x61, 0x66]]],
] as const);

/** `alpha` of `[[:alpha:]]`. */
export function posixClass(name: string): CharTest | undefined {
  const ranges = POSIX.get(name);
  return ranges === undefined ? undefined : inRanges(ranges);
}

/** `L`, `Lu`, `Greek`: what JavaScript knows by that name, asked one character at a time. */
export function unicodeClass(name: string): CharTest | undefined {
  if (!/^[A-Za-z_]+$/.test(name)) return undefined;
  for (const property of [name, `Script=${name}`]) {
    try {
      const pattern = new RegExp(`^\\p{${property}}$`, "u");
      return (code) => pattern.test(String.fromCodePoint(code));
    } catch {
      // Not under this name.
    }
  }
  return undefined;
}
