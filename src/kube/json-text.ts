import { entriesOf, isJsonList, isJsonObject, type Json } from "./patch/json.ts";

/**
 * JSON text and back without losing a digit. A whole number that a double cannot hold exactly (beyond 2^53: a moment in
 * nanoseconds, a size in bytes that somebody made up, a random identifier) is a bigint in memory; every other number is
 * a number. So one value has one form, and `===` compares them.
 *
 * Such numbers are rare. Looking for one costs 3 % of JSON.parse; only a text that has one is read by the parser below,
 * which is some five times slower. (From Node 22 on a reviver sees the source of a number; Node 20 has no such thing.)
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text); // also where it throws what is wrong with the text
  return hasLongNumber(text) ? parseExactly(text) : value;
}

/** As JSON.stringify, for what `parseJson` returns; `indent` is for people. */
export function formatJson(value: unknown, indent = ""): string {
  try {
    return JSON.stringify(value, undefined, indent);
  } catch (error) {
    // The one thing that JSON.stringify refuses in what is no circle.
    if (!(error instanceof TypeError)) throw error;
    return formatExactly(value as Json, { indent, newline: indent === "" ? "" : "\n" });
  }
}

/** The form of a whole number in memory, whatever it was read from. */
export function exactInteger(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** Digits that a double can always hold: 2^53 has 16. */
const SAFE_DIGITS = 15;

/**
 * Whether there may be a number of 16 digits or more. A run of so many has one at every 16th character, so the others
 * need not be looked at; one that begins inside a word or right after a quote or a point is none.
 */
function hasLongNumber(text: string): boolean {
  for (let at = SAFE_DIGITS; at < text.length; at += SAFE_DIGITS + 1) {
    if (!isDigit(text, at)) continue;
    let [start, end] = [at, at + 1];
    while (start > 0 && isDigit(text, start - 1)) start--;
    while (end < text.length && isDigit(text, end)) end++;
    if (end - start > SAFE_DIGITS && BEFORE_NUMBER.has(text.charAt(start - 1))) return true;
    if (end > at + SAFE_DIGITS) at = end;
  }
  return false;
}

/** The empty text is what stands before the first character. */
const BEFORE_NUMBER: ReadonlySet<string> = new Set(["", "-", ":", "[", ",", " ", "\t", "\n", "\r"]);

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

const WORD = /[^\s:,"{}[\]]+/y;
const INTEGER = /^-?[0-9]+$/;

/** A list or an object that is being read; `key` is the member whose value comes next. */
interface Container {
  readonly value: unknown[] | Record<string, unknown>;
  key: string | undefined;
}

/** Of a text that is known to be JSON. Without recursion: nesting is bounded by others, and later. */
function parseExactly(text: string): unknown {
  const open: Container[] = [];
  let root: unknown;

  function put(value: unknown): void {
    const inner = open.at(-1);
    if (inner === undefined) root = value;
    else if (Array.isArray(inner.value)) inner.value.push(value);
    else setMember(inner, value);
  }

  for (let at = 0; at < text.length;) {
    const token = tokenAt(text, at);
    at += token.length;
    if (token === "{" || token === "[") {
      const value = token === "{" ? {} : [];
      put(value);
      open.push({ value, key: undefined });
    } else if (token === "}" || token === "]") {
      open.pop();
    } else if (token.startsWith('"')) {
      const content = token.includes("\\") ? (JSON.parse(token) as string) : token.slice(1, -1);
      const inner = open.at(-1);
      if (inner === undefined || Array.isArray(inner.value) || inner.key !== undefined) put(content);
      else inner.key = content;
    } else if (!SEPARATORS.has(token)) {
      put(INTEGER.test(token) ? readInteger(token) : (JSON.parse(token) as unknown));
    }
  }
  return root;
}

const SEPARATORS: ReadonlySet<string> = new Set([",", ":", " ", "\t", "\n", "\r"]);

function tokenAt(text: string, at: number): string {
  if (text.charAt(at) === '"') return text.slice(at, endOfString(text, at));
  WORD.lastIndex = at;
  return WORD.exec(text)?.[0] ?? text.charAt(at);
}

/** Behind the quote that ends the string; a regular expression would keep a place to go back to for each character. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charAt(end - 1 - escapes) === "\\") escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
  return text.length;
}

/** Longer than any number that a program means, and short enough that turning it into one takes no time. */
const DIGITS_MAX = 1_000;

function readInteger(token: string): number | bigint {
  const isShort = token.length <= SAFE_DIGITS || token.length > DIGITS_MAX;
  return isShort ? Number(token) : exactInteger(BigInt(token));
}

/** Defined, not assigned: `__proto__` is a key like any other. Of two members of one name the last counts. */
function setMember(inner: Container, value: unknown): void {
  const key = inner.key ?? "";
  inner.key = undefined;
  Object.defineProperty(inner.value, key, { value, enumerable: true, configurable: true, writable: true });
}

/** `newline` is the end of a line and the indent of the next, both empty in a text of one line. */
function formatExactly(value: Json, layout: { readonly indent: string; readonly newline: string }): string {
  if (typeof value === "bigint") return String(value);
  const within = { ...layout, newline: layout.newline === "" ? "" : layout.newline + layout.indent };
  const enclose = ([open, close]: readonly [string, string], items: readonly string[]) =>
    items.length === 0
      ? open + close
      : `${open}${within.newline}${items.join(`,${within.newline}`)}${layout.newline}${close}`;
  if (isJsonList(value))
    return enclose(
      ["[", "]"],
      value.map((item) => formatExactly(item, within)),
    );
  if (!isJsonObject(value)) return JSON.stringify(value);
  const colon = layout.indent === "" ? ":" : ": ";
  const members = entriesOf(value).map(
    ([key, member]) => `${JSON.stringify(key)}${colon}${formatExactly(member, within)}`,
  );
  return enclose(["{", "}"], members);
}
