import { CelError } from "./errors.ts";
import type { Token } from "./tokens.ts";

/**
 * Strings and bytes in quotes, one or three of them, raw or with escapes. In bytes an escape of two hexadecimal or
 * three octal digits is a byte; in a string it is a character.
 */
export function readString(source: string, at: number, prefix: string): { token: Token; end: number } {
  const isRaw = /r/i.test(prefix);
  const isBytes = /b/i.test(prefix);
  const open = at + prefix.length;
  const quote = source.startsWith(source.charAt(open).repeat(3), open)
    ? source.charAt(open).repeat(3)
    : source.charAt(open);
  const body = { start: open + quote.length, quote, isRaw };
  const end = findEnd(source, body);
  if (end === undefined) throw new CelError("Syntax", "Syntax error: unterminated string", at);
  const parts = isRaw ? [source.slice(body.start, end)] : unescape(source, { ...body, end, isBytes });
  const token: Token = isBytes
    ? { kind: "bytes", bytes: toBytes(parts), at }
    : { kind: "string", text: parts.join(""), at };
  return { token, end: end + quote.length };
}

function findEnd(
  source: string,
  { start, quote, isRaw }: { readonly start: number; readonly quote: string; readonly isRaw: boolean },
): number | undefined {
  for (let at = start; at < source.length; at++) {
    if (source.startsWith(quote, at)) return at;
    if (quote.length === 1 && /[\n\r]/.test(source.charAt(at))) return undefined;
    if (!isRaw && source[at] === "\\") at++;
  }
  return undefined;
}

const SIMPLE: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "`": "`",
  "?": "?",
};
const NUMERIC = /\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/y;

/** Texts, and bytes where an escape names one. */
function unescape(
  source: string,
  { start, end, isBytes }: { readonly start: number; readonly end: number; readonly isBytes: boolean },
): (string | number)[] {
  const parts: (string | number)[] = [];
  for (let at = start; at < end;) {
    const next = source.indexOf("\\", at);
    if (next < 0 || next >= end) {
      parts.push(source.slice(at, end));
      break;
    }
    parts.push(source.slice(at, next));
    const simple = SIMPLE[source.charAt(next + 1)];
    if (simple !== undefined) {
      parts.push(simple);
      at = next + 2;
      continue;
    }
    NUMERIC.lastIndex = next;
    const match = NUMERIC.exec(source);
    if (match === null) throw new CelError("Syntax", "Syntax error: invalid escape sequence", next);
    const [text, hex, short, long, octal] = match;
    parts.push(
      toPart({ isByte: isBytes && (hex ?? octal) !== undefined, hex: hex ?? short ?? long, octal, next }),
    );
    at = next + text.length;
  }
  return parts;
}

function toPart({
  isByte,
  hex,
  octal,
  next,
}: {
  readonly isByte: boolean;
  readonly hex: string | undefined;
  readonly octal: string | undefined;
  readonly next: number;
}): string | number {
  const code = hex === undefined ? parseInt(octal ?? "0", 8) : parseInt(hex, 16);
  if (isByte) return code;
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    throw new CelError("Syntax", "Syntax error: escape names no character", next);
  }
  return String.fromCodePoint(code);
}

function toBytes(parts: readonly (string | number)[]): Uint8Array {
  return Uint8Array.from(
    parts.flatMap((part) => (typeof part === "number" ? [part] : [...Buffer.from(part, "utf8")])),
  );
}
