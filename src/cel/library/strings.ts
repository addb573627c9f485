import { evaluationError } from "../errors.ts";
import { declare, type Library, type Work } from "../functions.ts";
import { codePoints } from "../values.ts";

/** Texts as the standard has them, and the extension of strings that Kubernetes switches on. */
export const STRINGS: Library = [
  declare("string -> contains(string) bool", (text: string, part: string) => text.includes(part)),
  declare("string -> startsWith(string) bool", (text: string, start: string) => text.startsWith(start)),
  declare("string -> endsWith(string) bool", (text: string, end: string) => text.endsWith(end)),

  declare("string -> charAt(int) string", charAt),
  declare("string -> indexOf(string) int", (text: string, part: string) => indexOf(text, part, 0n)),
  declare("string -> indexOf(string, int) int", indexOf),
  declare("string -> lastIndexOf(string) int", (text: string, part: string) => lastIndexOf(text, part)),
  declare("string -> lastIndexOf(string, int) int", lastIndexOf),
  declare("string -> lowerAscii() string", (text: string) =>
    text.replace(/[A-Z]/g, (char) => char.toLowerCase()),
  ),
  declare("string -> upperAscii() string", (text: string) =>
    text.replace(/[a-z]/g, (char) => char.toUpperCase()),
  ),
  declare("string -> replace(string, string) string", (text: string, from: string, to: string, work: Work) =>
    replace(text, from, to, -1n, work),
  ),
  declare("string -> replace(string, string, int) string", replace),
  declare("string -> split(string) list(string)", (text: string, separator: string) =>
    split(text, separator, -1n),
  ),
  declare("string -> split(string, int) list(string)", split),
  declare("string -> substring(int) string", (text: string, start: bigint) => substring(text, start)),
  declare("string -> substring(int, int) string", substring),
  declare("string -> trim() string", trim),
  declare("string -> reverse() string", (text: string) => codePoints(text).reverse().join("")),
  declare("list(string) -> join() string", (list: readonly string[], work: Work) => join(list, "", work)),
  declare("list(string) -> join(string) string", join),
  declare("strings.quote(string) string", quote),
];

function charAt(text: string, index: bigint): string {
  const chars = codePoints(text);
  if (index < 0n || index > BigInt(chars.length)) throw evaluationError(`index out of range: ${index}`);
  return chars[Number(index)] ?? "";
}

/** Code points before a place in JavaScript's units. */
function toIndex(text: string, at: number): bigint {
  return at < 0 ? -1n : BigInt(codePoints(text.slice(0, at)).length);
}

/** Where in JavaScript's units the code point of that index is. */
function toOffset(text: string, index: bigint): number {
  const chars = codePoints(text);
  if (index < 0n || index > BigInt(chars.length)) throw evaluationError(`index out of range: ${index}`);
  return chars.slice(0, Number(index)).join("").length;
}

function indexOf(text: string, part: string, from: bigint): bigint {
  if (part === "") {
    toOffset(text, from);
    return from;
  }
  return toIndex(text, text.indexOf(part, toOffset(text, from)));
}

function lastIndexOf(text: string, part: string, from?: bigint | Work): bigint {
  const isGiven = typeof from === "bigint";
  if (part === "") {
    if (isGiven) toOffset(text, from);
    return isGiven ? from : toIndex(text, text.length);
  }
  return toIndex(text, text.lastIndexOf(part, isGiven ? toOffset(text, from) : text.length));
}

function replace(text: string, from: string, to: string, limit: bigint, work: Work): string {
  if (limit === 0n) return text;
  const parts = from === "" ? ["", ...codePoints(text), ""] : text.split(from);
  const count = limit < 0n ? parts.length - 1 : Math.min(Number(limit), parts.length - 1);
  // Before it is made: a text of a megabyte in place of every letter would be a terabyte.
  work.charge(Math.ceil((count * to.length) / 16));
  const replaced = parts.slice(0, count + 1).join(to);
  const rest = parts.slice(count + 1);
  return rest.length === 0 ? replaced : [replaced, ...rest].join(from);
}

function split(text: string, separator: string, limit: bigint): string[] {
  if (limit === 0n) return [];
  const parts = separator === "" ? codePoints(text) : text.split(separator);
  if (limit < 0n || BigInt(parts.length) <= limit) return parts;
  const count = Number(limit) - 1;
  return [...parts.slice(0, count), parts.slice(count).join(separator)];
}

function substring(text: string, start: bigint, end?: bigint | Work): string {
  const chars = codePoints(text);
  const stop = typeof end === "bigint" ? end : BigInt(chars.length);
  if (start < 0n || start > BigInt(chars.length)) throw evaluationError(`index out of range: ${start}`);
  if (stop < 0n || stop > BigInt(chars.length)) throw evaluationError(`index out of range: ${stop}`);
  if (start > stop) throw evaluationError(`invalid substring range. start: ${start}, end: ${stop}`);
  return chars.slice(Number(start), Number(stop)).join("");
}

/** What Unicode calls white space; JavaScript takes U+FEFF for it too, and not U+0085. */
function trim(text: string): string {
  return text.replace(/^\p{White_Space}+/u, "").replace(/\p{White_Space}+$/u, "");
}

function join(list: readonly unknown[], separator: string, work: Work): string {
  work.charge(list.length + Math.ceil((list.length * separator.length) / 16));
  if (!list.every((item) => typeof item === "string")) throw evaluationError("no such overload");
  return list.join(separator);
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

/** As a literal that means the same; what is half a character becomes U+FFFD. */
function quote(text: string): string {
  const inner = codePoints(text.replace(/\p{Surrogate}/gu, "\ufffd")).map((char) => ESCAPES[char] ?? char);
  return `"${inner.join("")}"`;
}
