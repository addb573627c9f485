import { CelError } from "./errors.ts";
import { readString } from "./literals.ts";

export type Token =
  | { readonly kind: "ident"; readonly text: string; readonly at: number }
  /** In backquotes: only the name of a field may be written so. */
  | { readonly kind: "quoted-ident"; readonly text: string; readonly at: number }
  | { readonly kind: "int" | "uint" | "double"; readonly text: string; readonly at: number }
  | { readonly kind: "string"; readonly text: string; readonly at: number }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array; readonly at: number }
  | { readonly kind: "sign"; readonly text: string; readonly at: number }
  | { readonly kind: "end"; readonly at: number };

/** What cel-go reads at most; an API object has 1.5 MB, and no expression anybody reads comes near. */
export const EXPRESSION_CHARS_MAX = 100_000;

const SPACE = /(?:[ \t\n\f\r]+|\/\/[^\n]*)+/y;
const IDENT = /[_a-zA-Z][_a-zA-Z0-9]*/y;
const QUOTED_IDENT = /`([a-zA-Z0-9_.\-/ ]+)`/y;
const NUMBER = /0x[0-9a-fA-F]+[uU]?|[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+(?:[eE][+-]?[0-9]+|[uU])?/y;
const STRING_START = /(?:[rR]?[bB]?|[bB][rR])("""|'''|"|')/y;
const SIGN = /\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,()[\]{}]/y;

/** All tokens of an expression, the last of them `end`; throws at the first character that belongs to none. */
export function readTokens(source: string): Token[] {
  if (source.length > EXPRESSION_CHARS_MAX) {
    throw new CelError("Syntax", `expression code point size exceeds limit: ${EXPRESSION_CHARS_MAX}`, 0);
  }
  const tokens: Token[] = [];
  let at = 0;
  while (true) {
    at += matchAt(SPACE, source, at)?.[0].length ?? 0;
    if (at >= source.length) break;
    const { token, end } = readToken(source, at);
    tokens.push(token);
    at = end;
  }
  tokens.push({ kind: "end", at });
  return tokens;
}

function readToken(source: string, at: number): { token: Token; end: number } {
  const opening = matchAt(STRING_START, source, at);
  if (opening !== null) return readString(source, at, opening[0].slice(0, -(opening[1]?.length ?? 0)));
  const ident = matchAt(IDENT, source, at)?.[0];
  if (ident !== undefined) return { token: { kind: "ident", text: ident, at }, end: at + ident.length };
  const quoted = matchAt(QUOTED_IDENT, source, at);
  if (quoted !== null) {
    return { token: { kind: "quoted-ident", text: quoted[1] ?? "", at }, end: at + quoted[0].length };
  }
  const number = matchAt(NUMBER, source, at)?.[0];
  if (number !== undefined) {
    return { token: { kind: numberKind(number), text: number, at }, end: at + number.length };
  }
  const sign = matchAt(SIGN, source, at)?.[0];
  if (sign !== undefined) return { token: { kind: "sign", text: sign, at }, end: at + sign.length };
  const odd = String.fromCodePoint(source.codePointAt(at) ?? 0);
  throw new CelError("Syntax", `Syntax error: token recognition error at: '${odd}'`, at);
}

function numberKind(text: string): "int" | "uint" | "double" {
  if (/[uU]$/.test(text)) return "uint";
  return !text.startsWith("0x") && /[.eE]/.test(text) ? "double" : "int";
}

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}
